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
    /// How much more it is for each queue than the one job that the queue counts itself: each component and each task is one.
    /// An array without tasks left is less, for those that have started are loads of their own.
    further: Vec<(Arc<str>, i64)>,
    /// The same for the cluster, where components are not counted singly.
    further_tasks: i64,
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
        let parts: Vec<Part> = left.map(|(_, component)| part(component)).collect();
        let tasks = i64::try_from(jobs).unwrap_or(i64::MAX);
        let is_counted = job.id.index.is_none() && !job.is_finished();
        let further = |queue: &Arc<str>| {
            let of_queue = parts.iter().filter(|(.., own)| own == queue).count();
            let of_queue = i64::try_from(of_queue).unwrap_or(i64::MAX);
            let is_counted = is_counted && (of_queue > 0 || job.array.is_some());
            let more = of_queue.saturating_mul(tasks) - i64::from(is_counted);
            (more != 0).then(|| (queue.clone(), more))
        };
        let further = job.queues().filter_map(further).collect();
        Self { owner: job.owner.clone(), parts, jobs, further, further_tasks: tasks - i64::from(is_counted) }
    }

    /// The same load, counted elsewhere: `moved` maps the number and the present charge of each counted part to the new
    /// charge.
    pub(crate) fn moved(&self, moved: impl Fn(usize, Charge) -> Charge) -> Self {
        let parts = self.charges().enumerate().map(|(number, charge)| {
            let Charge { account, class, queue, .. } = moved(number, charge);
            (account, class, queue)
        });
        let (further, further_tasks) = (Vec::new(), 0);
        Self { owner: self.owner.clone(), parts: parts.collect(), jobs: self.jobs, further, further_tasks }
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
    /// The components and tasks in a queue beyond the one of each job that the queue counts itself.
    further: BTreeMap<Arc<str>, i64>,
    /// The tasks beyond the one of each job.
    further_tasks: i64,
}

impl Submitted {
    /// How much of a job is counted; `None` if nothing is, as for most jobs.
    pub(crate) fn load(accounts: &Accounts, job: &Job) -> Option<Load> {
        let is_several = job.components.len() > 1 || job.array.is_some() || job.id.index.is_some();
        (accounts.settings.limits || is_several).then(|| Load::of(job))
    }

    pub(crate) fn of(&self, counter: &Counter) -> u64 {
        self.counted.get(counter).copied().unwrap_or(0)
    }

    /// Components and tasks in a queue beyond the one of each job.
    pub(crate) fn further_in(&self, queue: &str) -> i64 {
        self.further.get(queue).copied().unwrap_or(0)
    }

    /// Tasks beyond the one of each job.
    pub(crate) fn further_tasks(&self) -> i64 {
        self.further_tasks
    }

    pub(crate) fn add(&mut self, accounts: &Accounts, load: &Load) {
        for counter in load.charges().flat_map(|charge| accounts.rules(&charge).counters) {
            *self.counted.entry(counter).or_default() += load.jobs;
        }
        self.count_further(load, 1);
    }

    pub(crate) fn subtract(&mut self, accounts: &Accounts, load: &Load) {
        for counter in load.charges().flat_map(|charge| accounts.rules(&charge).counters) {
            take_from(&mut self.counted, &counter, load.jobs);
        }
        self.count_further(load, -1);
    }

    fn count_further(&mut self, load: &Load, sign: i64) {
        self.further_tasks += sign * load.further_tasks;
        for (queue, more) in &load.further {
            let count = self.further.entry(queue.clone()).or_default();
            *count += sign * more;
            if *count == 0 {
                self.further.remove(queue);
            }
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
