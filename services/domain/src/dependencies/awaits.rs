//! What waiting jobs wait for, as far as it can be foreseen.

use super::{Condition, ConditionStatus};
use crate::jobs::{Component, ComponentExtras, Job};
use muster_schemas::{
    JobId, Timestamp,
    job::{Dependency, DependencyKind},
};

/// Something that a waiting job waits for, as far as it can be foreseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The start of a job, and then a delay, in seconds.
    Start {
        /// The job.
        job: JobId,
        /// The delay.
        delay_seconds: u32,
    },
    /// The end of a job, as it is hoped for, and then a delay, in seconds.
    End {
        /// The job.
        job: JobId,
        /// The delay.
        delay_seconds: u32,
    },
    /// This time.
    Time(Timestamp),
}

impl Awaited {
    /// The job whose start or end is awaited.
    pub const fn job(&self) -> Option<JobId> {
        match self {
            Self::Start { job, .. } | Self::End { job, .. } => Some(*job),
            Self::Time(_) => None,
        }
    }

    /// The time, if it is known.
    pub const fn time(&self) -> Option<Timestamp> {
        match self {
            Self::Time(time) => Some(*time),
            Self::Start { .. } | Self::End { .. } => None,
        }
    }
}

impl Condition {
    /// The start, end or time that it waits for, if that can be foreseen: nobody expects that a job fails.
    fn awaited(&self) -> Option<Awaited> {
        let Dependency { kind, job, delay_seconds } = self.dependency;
        match (self.status, kind, job) {
            (ConditionStatus::Delayed(until), ..) => Some(Awaited::Time(until)),
            (ConditionStatus::Unmet, DependencyKind::Started | DependencyKind::Running, Some(job)) => {
                Some(Awaited::Start { job, delay_seconds })
            }
            (
                ConditionStatus::Unmet,
                DependencyKind::Ended | DependencyKind::Succeeded | DependencyKind::NotFailed,
                Some(job),
            ) => Some(Awaited::End { job, delay_seconds }),
            _ => None,
        }
    }
}

impl ComponentExtras {
    /// What it waits for: of each group one thing. A group is empty if nothing of it can be foreseen.
    fn awaits(&self) -> Vec<Vec<Awaited>> {
        let shut = self.dependencies.iter().filter(|group| !group.iter().any(Condition::lets_go));
        let of_group = |group: &Vec<Condition>| group.iter().filter_map(Condition::awaited).collect();
        let before = self.before.iter().filter(|condition| !self.counts_before() && !condition.lets_go());
        let begin = self.begin.filter(|_| !self.begin_open()).map(|begin| vec![Awaited::Time(begin)]);
        let before = before.map(|condition| condition.awaited().into_iter().collect());
        shut.map(of_group).chain(before).chain(begin).collect()
    }
}

impl Job {
    /// What a waiting job waits for before it enters the queue, of each group one thing; a group is empty if nothing of it can be
    /// foreseen. `None` if it waits for no other job, or for something else too, such as a release.
    pub fn awaits(&self) -> Option<Vec<Vec<Awaited>>> {
        let extras = |component: &Component| component.extras.as_deref().map(ComponentExtras::awaits);
        let waits_for_others = |one: &Component| one.extras.as_deref().is_some_and(|extras| !extras.dependencies_met());
        let is_meant = self.is_waiting()
            && self.components.iter().any(waits_for_others)
            && self.components.iter().all(|component| component.holds.is_empty());
        is_meant.then(|| self.components.iter().filter_map(extras).flatten().collect())
    }
}
