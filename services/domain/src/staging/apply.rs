//! Staging for jobs, and the persistent buffers that come and go with it.

use crate::state::{
    Job, State,
    staging::{Buffer, JobStaging, Stage},
};
use muster_schemas::{
    JobId, Timestamp,
    filter::{CallId, FilterExit, FilterKind, FilterReport},
};

impl State {
    /// The staging of a job that is new or became another; most jobs have nothing to be staged, and a cluster without a program
    /// stages nothing.
    pub(super) fn new_staging(&self, job: &Job) -> Option<Box<JobStaging>> {
        let is_staged = self.staging.settings.program.is_some() && !job.staged_components().is_empty();
        is_staged.then(Box::default)
    }

    /// The staging program is asked for a job.
    pub(super) fn staging_began(&mut self, id: JobId, kind: FilterKind) {
        self.change_staging(id, |staging| {
            staging.has_begun = true;
            staging.stage = if kind == FilterKind::StageOut { Stage::Leaving } else { Stage::Coming };
        });
        if kind == FilterKind::StageOut {
            // What was asked of the job while it was staged in is past.
            self.change_filtering(id, |filtering| filtering.ends_after_verdict = None);
        }
    }

    /// It has done all that it was asked for.
    pub(super) fn staging_passed(&mut self, id: JobId, kind: FilterKind) {
        let stage = if kind == FilterKind::StageOut { Stage::Out } else { Stage::In };
        self.change_staging(id, |staging| staging.stage = stage);
    }

    /// It could not stage in what a job needs.
    pub(super) fn staging_failed(&mut self, id: JobId, kind: FilterKind, why: &str) {
        if kind == FilterKind::StageIn {
            self.change_staging(id, |staging| staging.stage = Stage::Failed(why.to_owned()));
        }
    }

    /// A component was staged in: the persistent buffers that it makes are there, and those that it removes are not
    /// (SL-B-02).
    pub(super) fn staged(&mut self, call: &CallId, report: &FilterReport, now: Timestamp) {
        if call.kind != FilterKind::StageIn || report.exit != FilterExit::Code(0) {
            return;
        }
        let Some(job) = self.jobs.get(&call.job) else { return };
        let Some(component) = job.staged_components().get(call.position as usize).copied().cloned() else { return };
        let buffer = Buffer { owner: job.owner.user.clone(), job: job.id, created: now };
        for name in &component.creates {
            self.staging.buffers.entry(name.clone()).or_insert_with(|| buffer.clone());
        }
        component.destroys.iter().for_each(|name| drop(self.staging.buffers.remove(name)));
        component.creates.iter().chain(&component.destroys).for_each(|name| self.buffer_changed(name));
    }

    fn change_staging(&mut self, id: JobId, change: impl FnOnce(&mut JobStaging)) {
        self.change_job(id, |job| {
            if let Some(staging) = &mut job.staging {
                change(staging);
            }
        });
    }
}
