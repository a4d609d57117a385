//! When what happened to the jobs of a swarm.

use muster_schemas::JobId;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// When jobs were submitted, ordered and over.
#[derive(Default)]
pub(super) struct Moments(Mutex<HashMap<JobId, Moment>>);

/// The moments of a job.
#[derive(Clone, Copy, Default)]
pub(super) struct Moment {
    pub(super) submitted: Option<Instant>,
    pub(super) ordered: Option<Instant>,
    pub(super) is_over: bool,
}

impl Moments {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<JobId, Moment>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The order arrived at its node.
    pub(super) fn ordered(&self, job: JobId) {
        self.lock().entry(job).or_default().ordered.get_or_insert_with(Instant::now);
    }

    /// The ledger has recorded its end.
    pub(super) fn is_over(&self, job: JobId) {
        self.lock().entry(job).or_default().is_over = true;
    }

    /// The jobs were asked for at a moment.
    pub(super) fn submitted(&self, jobs: &[JobId], asked: Instant) {
        let mut moments = self.lock();
        for job in jobs {
            moments.entry(*job).or_default().submitted = Some(asked);
        }
    }
}
