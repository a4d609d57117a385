//! Counts of waiting and running jobs, as far as they are limited (SL-L-01).

use crate::{
    accounts::{Accounts, Charge, Counter},
    jobs::{Component, Job},
};
use muster_schemas::event::Owner;
use std::{collections::BTreeMap, sync::Arc};

/// How many jobs a waiting or running job counts as, and for whom (SL-L-01).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    owner: Arc<Owner>,
    parts: Vec<Part>,
    /// For each part.
    jobs: u64,
}

/// Account, class and queue of a component.
type Part = (Option<Arc<str>>, Option<Arc<str>>, Arc<str>);

impl Load {
    /// The charge of a job, of an array's tasks that have not started, or of a task that has. A component that has
    /// ended alone no longer counts.
    pub(crate) fn of(job: &Job) -> Self {
        let jobs = match (&job.array, job.is_finished()) {
            (_, true) => 0,
            (Some(array), false) => array.remaining.len(),
            (None, false) => 1,
        };
        let part =
            |component: &Component| (component.account.clone(), component.class().cloned(), component.queue.clone());
        let is_over = |number: u32| job.single_end(number).is_some_and(|end| end.over.is_some());
        let left = (0..).zip(&job.components).filter(|(number, _)| jobs > 0 && !is_over(*number));
        let parts = left.map(|(_, component)| part(component)).collect();
        Self { owner: job.owner.clone(), parts, jobs }
    }

    /// The same load, counted elsewhere: `moved` maps the number and the present charge of each counted part to the new
    /// charge.
    pub(crate) fn moved(&self, moved: impl Fn(usize, Charge) -> Charge) -> Self {
        let parts = self.charges().enumerate().map(|(number, charge)| {
            let Charge { account, class, queue, .. } = moved(number, charge);
            (account, class, queue)
        });
        Self { owner: self.owner.clone(), parts: parts.collect(), jobs: self.jobs }
    }

    /// How many jobs each part counts as.
    pub(crate) fn jobs(&self) -> u64 {
        self.jobs
    }

    /// The charge of each component.
    pub(crate) fn charges(&self) -> impl Iterator<Item = Charge> + '_ {
        self.parts.iter().map(|(account, class, queue)| Charge {
            account: account.clone(),
            user: self.owner.user.as_str().into(),
            class: class.clone(),
            queue: queue.clone(),
        })
    }

    /// The queue of each component that is not the first one in its queue.
    fn repeated_queues(&self) -> impl Iterator<Item = &Arc<str>> {
        self.parts.iter().enumerate().filter_map(|(at, (.., queue))| {
            self.parts[..at].iter().any(|(.., earlier)| earlier == queue).then_some(queue)
        })
    }

    /// How many jobs this load is for a counter.
    pub(crate) fn counted_by(&self, accounts: &Accounts, counter: &Counter) -> u64 {
        let is_counted = |charge: &Charge| accounts.rules(charge).counters.contains(counter);
        self.charges().filter(is_counted).count() as u64 * self.jobs
    }
}

/// The waiting and running jobs, as far as they are limited. Derived from the jobs, never stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Submitted {
    counted: BTreeMap<Counter, u64>,
    /// Components in a queue beyond the first of each job, which the queue counts itself.
    further: BTreeMap<Arc<str>, u64>,
}

impl Submitted {
    /// How much of a job is counted; `None` if nothing is, as for most jobs.
    pub(crate) fn load(accounts: &Accounts, job: &Job) -> Option<Load> {
        (accounts.settings.limits || job.components.len() > 1).then(|| Load::of(job))
    }

    pub(crate) fn of(&self, counter: &Counter) -> u64 {
        self.counted.get(counter).copied().unwrap_or(0)
    }

    /// Components in a queue beyond the first of each job.
    pub(crate) fn further_in(&self, queue: &str) -> u64 {
        self.further.get(queue).copied().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, accounts: &Accounts, load: &Load) {
        for counter in load.charges().flat_map(|charge| accounts.rules(&charge).counters) {
            *self.counted.entry(counter).or_default() += load.jobs;
        }
        for queue in load.repeated_queues() {
            *self.further.entry(queue.clone()).or_default() += load.jobs;
        }
    }

    pub(crate) fn subtract(&mut self, accounts: &Accounts, load: &Load) {
        for counter in load.charges().flat_map(|charge| accounts.rules(&charge).counters) {
            take_from(&mut self.counted, &counter, load.jobs);
        }
        for queue in load.repeated_queues() {
            take_from(&mut self.further, queue, load.jobs);
        }
    }
}

fn take_from<K: Ord>(counts: &mut BTreeMap<K, u64>, key: &K, jobs: u64) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(jobs);
        if *count == 0 {
            counts.remove(key);
        }
    }
}
