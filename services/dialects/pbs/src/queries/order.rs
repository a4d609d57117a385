//! `qorder`: two jobs exchange their places in a queue.

use muster_schemas::{JobId, policy::OrderKey, time::Timestamp};

/// A job that waits in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The job.
    pub job: JobId,
    /// Its own priority.
    pub priority: i64,
    /// What its service class adds to that.
    pub class_priority: i64,
    /// When it arrived.
    pub arrival: Timestamp,
}

impl Place {
    fn key(&self) -> (std::cmp::Reverse<i64>, Timestamp, JobId) {
        (std::cmp::Reverse(self.priority.saturating_add(self.class_priority)), self.arrival, self.job)
    }
}

/// Whether jobs with a higher priority go first, and of those with the same one the first that arrived: only then
/// priorities can say which place a job has.
pub fn is_by_priority(order: &[OrderKey]) -> bool {
    let own: Vec<&OrderKey> = order.iter().skip_while(|key| **key == OrderKey::QueuePriority).collect();
    matches!(own.as_slice(), [OrderKey::Priority] | [OrderKey::Priority, OrderKey::Fcfs])
}

/// The new priorities of two jobs with which each of them has the other's place, and all other jobs keep theirs; `None`
/// if no priorities do that, since others have the same one. Jobs that are not in the queue cannot be exchanged.
pub fn exchanged(queue: &[Place], one: JobId, other: JobId) -> Option<[(JobId, i64); 2]> {
    let mut before: Vec<Place> = queue.to_vec();
    before.sort_by_key(Place::key);
    let at = |wanted: JobId| before.iter().position(|place| place.job == wanted);
    let (first, second) = (at(one)?, at(other)?);
    let mut wanted: Vec<JobId> = before.iter().map(|place| place.job).collect();
    wanted.swap(first, second);
    let candidates = |at: usize, own: &Place| {
        let near = [at.checked_sub(1), Some(at), Some(at + 1)];
        let near = near.into_iter().flatten().filter_map(|at| before.get(at));
        let mut all: Vec<i64> = near
            .flat_map(|place| {
                let level = place.priority.saturating_add(place.class_priority).saturating_sub(own.class_priority);
                [level, level.saturating_sub(1), level.saturating_add(1)]
            })
            .collect();
        // The least change is tried first.
        all.sort_by_key(|priority| priority.abs_diff(own.priority));
        all
    };
    let (one, other) = (before[first], before[second]);
    for priority_of_one in candidates(second, &one) {
        for priority_of_other in candidates(first, &other) {
            let mut after = before.clone();
            after[first].priority = priority_of_one;
            after[second].priority = priority_of_other;
            after.sort_by_key(Place::key);
            if after.iter().map(|place| place.job).eq(wanted.iter().copied()) {
                return Some([(one.job, priority_of_one), (other.job, priority_of_other)]);
            }
        }
    }
    None
}
