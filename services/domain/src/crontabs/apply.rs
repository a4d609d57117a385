//! What records do to tables.

use crate::{
    crontabs::{Crontab, RepeatedJob},
    state::State,
};
use muster_schemas::{JobId, crontab::CronJob};
use std::sync::Arc;

impl State {
    /// A user has another table, or none.
    pub(crate) fn crontab_set(&mut self, user: &str, text: &str, jobs: &[CronJob]) {
        if text.is_empty() && jobs.is_empty() {
            self.crontabs.remove(user);
            return;
        }
        let repeated = |job: &CronJob| RepeatedJob {
            job: job.job,
            lines: Arc::new(job.lines.clone()),
            // It may have been refused already.
            is_over: self.job(job.job).is_none_or(|job| job.is_finished()),
        };
        let jobs = jobs.iter().map(repeated).collect();
        self.crontabs.insert(user.to_owned(), Crontab { text: text.into(), jobs });
    }

    /// A job is over: if a table has it, its lines are disabled.
    pub(crate) fn repeated_job_over(&mut self, id: JobId) {
        if self.crontabs.is_empty() {
            return;
        }
        let Some(user) = self.job(id).map(|job| job.owner.clone()) else { return };
        let jobs = self.crontabs.get_mut(user.user.as_str()).into_iter().flat_map(|crontab| &mut crontab.jobs);
        jobs.filter(|job| job.job == id).for_each(|job| job.is_over = true);
    }
}
