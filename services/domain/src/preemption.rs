//! Which running jobs make way for a waiting one, because of their classes or their queues, and how.

use crate::{jobs::Job, state::State};
use muster_schemas::cluster::{MakesWay, WayOut};

impl State {
    /// Whether a running job makes way for another because of their classes, or of their queues.
    pub(crate) fn makes_way(&self, victim: &Job, gains: &Job) -> bool {
        let by_queue = || Some(self.makes_way_above(victim)? < self.queue_priority(gains)?);
        self.accounts().makes_way(victim, gains) || by_queue().unwrap_or(false)
    }

    /// A running job makes way for jobs of queues with a higher priority than this; `None` if its queues do not let it.
    pub fn makes_way_above(&self, job: &Job) -> Option<i64> {
        self.ways_of_queues(job)?;
        job.components.iter().filter_map(|component| Some(self.queue(&component.queue)?.spec.priority)).max()
    }

    /// The priority of a job's queue; the lowest if its components are in several.
    fn queue_priority(&self, job: &Job) -> Option<i64> {
        job.components.iter().map(|component| Some(self.queue(&component.queue)?.spec.priority)).min().flatten()
    }

    /// How its queues let a job make way; `None` if not all of them do.
    fn ways_of_queues(&self, job: &Job) -> Option<Vec<MakesWay>> {
        let way = |queue: &str| self.queue(queue)?.spec.makes_way;
        job.components.iter().map(|component| way(&component.queue)).collect()
    }

    /// Whether a job that makes way is cancelled. What its queues say counts before what its classes say.
    pub(crate) fn cancels_preempted(&self, job: &Job) -> bool {
        match self.ways_of_queues(job) {
            Some(ways) => ways.iter().any(|way| way.by == WayOut::Cancel),
            None => self.accounts().cancels_preempted(job),
        }
    }

    /// Whether a job that makes way is suspended, if that is possible.
    pub(crate) fn suspends_preempted(&self, job: &Job) -> bool {
        match self.ways_of_queues(job) {
            Some(ways) => ways.iter().all(|way| way.by == WayOut::Suspend),
            None => self.accounts().suspends_preempted(job),
        }
    }

    /// How much longer than others a job that makes way has between SIGTERM and SIGKILL, in seconds.
    pub(crate) fn preemption_grace_seconds(&self, job: &Job) -> u32 {
        match self.ways_of_queues(job) {
            Some(ways) => ways.iter().map(|way| way.grace_seconds).max().unwrap_or(0),
            None => self.accounts().preemption_grace_seconds(job),
        }
    }
}
