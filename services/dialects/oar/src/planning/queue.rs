//! The order of waiting jobs.

use std::collections::BTreeMap;

/// A waiting job as its queue sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The job.
    pub job: u64,
    /// The user, whose jobs in a pass are limited under fair share.
    pub user: String,
    /// The priority of its queue; higher ones go first.
    pub queue_priority: i64,
    /// Whether it is best effort: such jobs come last.
    pub is_besteffort: bool,
    /// The karma of its user and project, if the queue is ordered by fair share.
    pub karma: Option<f64>,
}

/// The jobs in the order of a pass (OAR-G-03, OAR-Q-12): by queue, then by karma if there is one, then by id. Under fair
/// share a user has at most this many jobs.
pub fn order(mut entries: Vec<Entry>, most_of_user: usize) -> Vec<u64> {
    entries.sort_by(|one, other| {
        let by_queue = (one.is_besteffort, -one.queue_priority).cmp(&(other.is_besteffort, -other.queue_priority));
        let karma = |entry: &Entry| entry.karma.unwrap_or(0.0);
        by_queue.then(karma(one).total_cmp(&karma(other))).then(one.job.cmp(&other.job))
    });
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    let mut has_room = |entry: &Entry| {
        let count = taken.entry(entry.user.clone()).or_default();
        *count += usize::from(entry.karma.is_some());
        *count <= most_of_user || entry.karma.is_none()
    };
    entries.into_iter().filter(|entry| has_room(entry)).map(|entry| entry.job).collect()
}
