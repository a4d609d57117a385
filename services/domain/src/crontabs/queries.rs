//! Queries about tables.

use crate::{
    crontabs::{Crontab, RepeatedJob},
    jobs::Job,
    state::State,
};
use muster_schemas::{Timestamp, resources::IndexSet};

impl State {
    /// The table of a user.
    pub fn crontab(&self, user: &str) -> Option<&Crontab> {
        self.crontabs.get(user)
    }

    /// Whether a job is repeated.
    pub fn is_repeated(&self, job: &Job) -> bool {
        self.repeated(job).is_some()
    }

    fn repeated(&self, job: &Job) -> Option<&RepeatedJob> {
        if self.crontabs.is_empty() {
            return None;
        }
        let crontab = self.crontabs.get(job.owner.user.as_str())?;
        crontab.jobs.iter().find(|known| known.job == job.id && !known.is_over)
    }

    /// When a job of a table is repeated next.
    pub(crate) fn repeats_at(&self, job: &Job, now: Timestamp) -> Option<Timestamp> {
        self.repeated(job)?.lines.schedule.next_after(now)
    }
}

impl Crontab {
    /// The lines of jobs that are over, from 0.
    pub fn disabled(&self) -> IndexSet {
        let over = self.jobs.iter().filter(|job| job.is_over);
        over.fold(IndexSet::new(), |all, job| all.union(&IndexSet::from_range(job.lines.first, job.lines.last)))
    }
}
