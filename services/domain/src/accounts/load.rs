//! How many jobs wait and run, as far as that is limited (SL-L-01).

use crate::{
    accounts::{Accounts, Charge, Counter},
    jobs::{Component, Job},
};
use muster_schemas::event::Owner;
use std::{collections::BTreeMap, sync::Arc};

/// How many jobs a job counts as that waits or runs, and for whom (SL-L-01).
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
    /// The charge of a job, of the tasks of an array that have not started, or of one that has. A component that was
    /// ended alone counts no more.
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

    /// As it is, but counted for others: by the number of each part that counts, and for whom it counts now.
    pub(crate) fn moved(&self, moved: impl Fn(usize, Charge) -> Charge) -> Self {
        let parts = self.charges().enumerate().map(|(number, charge)| {
            let Charge { account, class, queue, .. } = moved(number, charge);
            (account, class, queue)
        });
        Self { owner: self.owner.clone(), parts: parts.collect(), jobs: self.jobs }
    }

    /// How many jobs each of its parts counts as.
    pub(crate) fn jobs(&self) -> u64 {
        self.jobs
    }

    /// Each of its components, by what it is counted for.
    pub(crate) fn charges(&self) -> impl Iterator<Item = Charge> + '_ {
        self.parts.iter().map(|(account, class, queue)| Charge {
            account: account.clone(),
            user: self.owner.user.as_str().into(),
            class: class.clone(),
            queue: queue.clone(),
        })
    }

    /// The queue of each component that is not the first in its queue.
    fn repeated_queues(&self) -> impl Iterator<Item = &Arc<str>> {
        self.parts.iter().enumerate().filter_map(|(at, (.., queue))| {
            self.parts[..at].iter().any(|(.., earlier)| earlier == queue).then_some(queue)
        })
    }

    /// How many jobs it is for a counter.
    pub(crate) fn counted_by(&self, accounts: &Accounts, counter: &Counter) -> u64 {
        let is_counted = |charge: &Charge| accounts.rules(charge).counters.contains(counter);
        self.charges().filter(is_counted).count() as u64 * self.jobs
    }
}

/// The jobs that wait and run, as far as they are limited. It follows from the jobs and is never stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Submitted {
    counted: BTreeMap<Counter, u64>,
    /// How many components of jobs are in a queue beyond the first of each job, which the queue counts itself.
    further: BTreeMap<Arc<str>, u64>,
}

impl Submitted {
    /// How much of a job is counted; `None` if nothing is, as of most jobs.
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
