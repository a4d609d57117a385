//! Usage in fixed windows of time (OAR-A).

use crate::resources::table::{Resource, Table};
use std::collections::{BTreeMap, BTreeSet};

/// The size of a window by default, in seconds.
pub const WINDOW: i64 = 86_400;

/// The kind of usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Walltime times resources.
    Asked,
    /// Real time times resources.
    Used,
}

impl Kind {
    /// The word for it in tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Asked => "ASKED",
            Self::Used => "USED",
        }
    }
}

/// A job that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its id.
    pub job: u64,
    /// Its user.
    pub user: String,
    /// Its project.
    pub project: String,
    /// Its queue.
    pub queue: String,
    /// Its resources of type default.
    pub resources: u64,
    /// When it started; `None` if it never did.
    pub start: Option<i64>,
    /// When it ended.
    pub stop: i64,
    /// Its walltime at the end.
    pub walltime: i64,
}

/// The number of resources that count: those of type default (OAR-A-07).
pub fn counted(table: &Table, resources: &BTreeSet<u32>) -> u64 {
    resources.iter().filter(|id| table.resource(**id).is_some_and(Resource::is_default)).count() as u64
}

/// Whose usage a row is, in which window.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The begin of the window: a multiple of its size since the epoch.
    pub window_start: i64,
    /// The user.
    pub user: String,
    /// The project.
    pub project: String,
    /// The queue.
    pub queue: String,
    /// The kind of usage.
    pub kind: Kind,
}

/// The seconds of an interval in each window that it touches, by the begin of the window.
pub fn by_window(start: i64, stop: i64, size: i64) -> Vec<(i64, u64)> {
    let mut parts = Vec::new();
    let mut at = start;
    while size > 0 && at < stop {
        let window = at.div_euclid(size) * size;
        let end = stop.min(window + size);
        parts.push((window, (end - at).unsigned_abs()));
        at = end;
    }
    parts
}

/// The usage of all jobs that have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Books {
    size: i64,
    rows: BTreeMap<Key, u64>,
    counted: BTreeSet<u64>,
}

/// What a user used and asked for, and the windows in which that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// In resource-seconds.
    pub asked: u64,
    /// In resource-seconds.
    pub used: u64,
    /// The begin of the first window.
    pub first: i64,
    /// The end of the last window.
    pub last: i64,
}

impl Books {
    /// Books without rows, with windows of a size of at least one second.
    pub fn new(size: i64) -> Self {
        Self { size: size.max(1), rows: BTreeMap::new(), counted: BTreeSet::new() }
    }

    /// The books of all jobs that have ended, from the beginning. Windows of another size are never mixed with others
    /// (OAR-A-08).
    pub fn recomputed<'e>(size: i64, jobs: impl IntoIterator<Item = &'e Ended>) -> Self {
        let mut books = Self::new(size);
        jobs.into_iter().for_each(|job| books.count(job));
        books
    }

    /// Counts a job. Each job counts once, and one that never started, or did not last, counts nothing.
    pub fn count(&mut self, job: &Ended) {
        let Some(start) = job.start.filter(|start| job.stop > *start) else { return };
        if !self.counted.insert(job.job) {
            return;
        }
        for (kind, stop) in [(Kind::Used, job.stop), (Kind::Asked, start.saturating_add(job.walltime))] {
            for (window_start, seconds) in by_window(start, stop, self.size) {
                let (user, project, queue) = (job.user.clone(), job.project.clone(), job.queue.clone());
                let key = Key { window_start, user, project, queue, kind };
                *self.rows.entry(key).or_default() += seconds * job.resources;
            }
        }
    }

    /// The rows in order. A window ends one second before the next begins.
    pub fn rows(&self) -> impl Iterator<Item = (&Key, i64, u64)> {
        self.rows.iter().map(|(key, sum)| (key, key.window_start + self.size - 1, *sum))
    }

    /// Drops windows that ended before a moment. Their jobs stay counted.
    pub fn delete_before(&mut self, moment: i64) {
        let size = self.size;
        self.rows.retain(|key, _| key.window_start + size > moment);
    }

    /// Sums by user over the windows that touch a span, of one project or of all.
    pub fn summary(&self, from: i64, to: i64, project: Option<&str>) -> BTreeMap<String, Summary> {
        let mut sums: BTreeMap<String, Summary> = BTreeMap::new();
        let touches = |key: &Key, stop: i64| stop > from && key.window_start < to;
        for (key, stop, sum) in self.rows().filter(|(key, stop, _)| touches(key, *stop)) {
            if project.is_some_and(|project| project != key.project) {
                continue;
            }
            let empty = Summary { asked: 0, used: 0, first: key.window_start, last: stop };
            let of_user = sums.entry(key.user.clone()).or_insert(empty);
            match key.kind {
                Kind::Asked => of_user.asked += sum,
                Kind::Used => of_user.used += sum,
            }
            (of_user.first, of_user.last) = (of_user.first.min(key.window_start), of_user.last.max(stop));
        }
        sums
    }

    /// The sum of the rows of a queue whose windows begin in a span, of those that a condition holds for.
    pub fn sum(&self, queue: &str, kind: Kind, from: i64, to: i64, is_meant: &dyn Fn(&Key) -> bool) -> u64 {
        let counts = |key: &Key| {
            key.queue == queue && key.kind == kind && (from..to).contains(&key.window_start) && is_meant(key)
        };
        self.rows.iter().filter(|(key, _)| counts(key)).map(|(_, sum)| sum).sum()
    }
}
