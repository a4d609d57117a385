//! Jobs that wait for others, in a simulation: they enter the queue when what they wait for has happened there (OAR-D-06).

use crate::{engine::Engine, model::Follower};
use muster_domain::dependencies::Awaited;
use muster_schemas::{JobId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// A follower that has not entered the queue.
#[derive(Clone, Debug)]
struct Outside {
    follower: Follower,
    /// When it enters, if that is known.
    enters: Option<Timestamp>,
}

/// The followers that have not entered the queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Followers {
    outside: BTreeMap<JobId, Outside>,
    /// The followers that a start or an end of a job matters to.
    of: BTreeMap<JobId, BTreeSet<JobId>>,
    /// When those enter whose time is known.
    entries: BTreeSet<(Timestamp, JobId)>,
}

impl Followers {
    pub fn of(followers: Vec<Follower>) -> Self {
        let mut all = Self::default();
        for follower in followers {
            let id = follower.job.id;
            for job in follower.awaits.iter().flatten().filter_map(Awaited::job) {
                all.of.entry(job).or_default().insert(id);
            }
            all.outside.insert(id, Outside { follower, enters: None });
            all.note_entry(id);
        }
        all
    }

    pub fn ids(&self) -> impl Iterator<Item = JobId> + '_ {
        self.outside.keys().copied()
    }

    /// When the next one enters.
    pub fn next_entry(&self) -> Option<Timestamp> {
        self.entries.first().map(|(at, _)| *at)
    }

    /// Those whose time has come enter the queue; whether there is one.
    pub fn enter(&mut self, engine: &mut Engine, now: Timestamp) -> bool {
        let mut has_entered = false;
        while let Some((_, id)) = self.entries.first().copied().filter(|(at, _)| *at <= now) {
            self.entries.pop_first();
            if let Some(outside) = self.outside.remove(&id) {
                engine.enqueue(outside.follower.job);
                has_entered = true;
            }
        }
        has_entered
    }

    /// A job has started.
    pub fn note_start(&mut self, job: JobId, now: Timestamp) {
        self.note(job, now, |awaited| match awaited {
            Awaited::Start { job, delay_seconds } => Some((*job, *delay_seconds)),
            Awaited::End { .. } | Awaited::Time(_) => None,
        });
    }

    /// A job has ended, successfully.
    pub fn note_end(&mut self, job: JobId, now: Timestamp) {
        self.note(job, now, |awaited| match awaited {
            Awaited::End { job, delay_seconds } => Some((*job, *delay_seconds)),
            Awaited::Start { .. } | Awaited::Time(_) => None,
        });
    }

    /// Whether anybody waits for a job.
    pub fn await_any(&self, job: JobId) -> bool {
        self.of.contains_key(&job)
    }

    fn note(&mut self, job: JobId, now: Timestamp, meant: impl Fn(&Awaited) -> Option<(JobId, u32)>) {
        for id in self.of.get(&job).cloned().unwrap_or_default() {
            let Some(outside) = self.outside.get_mut(&id) else { continue };
            for awaited in outside.follower.awaits.iter_mut().flatten() {
                if let Some((_, delay_seconds)) = meant(awaited).filter(|(other, _)| *other == job) {
                    *awaited = Awaited::Time(now.plus_seconds(i64::from(delay_seconds)));
                }
            }
            self.note_entry(id);
        }
    }

    /// Notes when a follower enters, if of all its groups something is known.
    fn note_entry(&mut self, id: JobId) {
        let Some(outside) = self.outside.get_mut(&id) else { return };
        let first = |group: &Vec<Awaited>| group.iter().filter_map(Awaited::time).min();
        let times: Option<Vec<Timestamp>> = outside.follower.awaits.iter().map(first).collect();
        let Some(at) = times.and_then(|times| times.into_iter().max()) else { return };
        if let Some(before) = outside.enters.replace(at) {
            self.entries.remove(&(before, id));
        }
        self.entries.insert((at, id));
    }
}
