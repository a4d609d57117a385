//! Staging for jobs, and the persistent buffers it creates and removes.

use crate::{
    jobs::Job,
    staging::{Buffer, JobStaging, Stage},
    state::State,
};
use muster_schemas::{
    JobId, Timestamp,
    filter::{CallId, FilterExit, FilterKind, FilterReport, StagingSettings},
};
use std::sync::Arc;

impl State {
    /// The staging of a new or changed job. Most jobs have nothing to stage, and a cluster without a staging program
    /// stages nothing.
    pub(crate) fn new_staging(&self, job: &Job) -> Option<Box<JobStaging>> {
        let is_staged = self.staging.settings.program.is_some() && !job.staged_components().is_empty();
        is_staged.then(Box::default)
    }

    /// The staging program is called for a job.
    pub(crate) fn staging_began(&mut self, id: JobId, kind: FilterKind) {
        self.change_staging(id, |staging| {
            staging.has_begun = true;
            staging.stage = if kind == FilterKind::StageOut { Stage::Leaving } else { Stage::Coming };
        });
        if kind == FilterKind::StageOut {
            // Requests made while it was staged in no longer matter.
            self.change_filters(id, |filters| filters.ends_after_verdict = None);
        }
    }

    /// The program has done everything that it was asked for.
    pub(crate) fn staging_passed(&mut self, id: JobId, kind: FilterKind) {
        let stage = if kind == FilterKind::StageOut { Stage::Out } else { Stage::In };
        self.change_staging(id, |staging| staging.stage = stage);
    }

    /// The program could not stage in what a job needs.
    pub(crate) fn staging_failed(&mut self, id: JobId, kind: FilterKind, why: &str) {
        if kind == FilterKind::StageIn {
            self.change_staging(id, |staging| staging.stage = Stage::Failed(why.to_owned()));
        }
    }

    /// A component was staged in: the persistent buffers that it creates exist now, and those that it removes no longer
    /// do (SL-B-02).
    pub(crate) fn staged(&mut self, call: &CallId, report: &FilterReport, now: Timestamp) {
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

    /// Updates whether staging is due for a job now.
    pub(crate) fn refresh_staging(&mut self, id: JobId) {
        if self.job(id).is_some_and(|job| self.staging_now(job).is_some()) {
            self.index.staging_ready.insert(id);
        } else {
            self.index.staging_ready.remove(&id);
        }
    }

    /// A persistent buffer was created or removed; updates the jobs that use it.
    pub(crate) fn buffer_changed(&mut self, name: &str) {
        let users = self.index.buffer_users.get(name).cloned().unwrap_or_default();
        users.into_iter().for_each(|id| self.refresh_staging(id));
    }

    /// The staging program or its limits changed.
    pub(crate) fn set_staging(&mut self, settings: &Arc<StagingSettings>) {
        self.staging.settings = settings.clone();
        self.index.to_stage.clone().into_iter().for_each(|id| self.refresh_staging(id));
    }
}
