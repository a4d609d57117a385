//! The effect of each event: the only code that changes a state.
//!
//! Applying never fails. A record that does not fit the state (which a log written by muster does not have) changes as
//! much as can be made of it, the same on every machine, and never panics.

mod accounts;
mod altered;
mod cluster;
mod components;
mod dependencies;
mod filters;
mod intake;
mod jobs;
mod lending;
mod offers;
mod planning;
mod runs;
mod sessions;
mod staging;
pub(crate) mod tasks;

use crate::state::{
    Job, Phase, Run, State, Suspension,
    accounts::Submitted,
    index::{Index, JobKeys},
};
use muster_schemas::{
    JobId, RunId, Timestamp,
    event::{Event, Record},
};

impl State {
    /// The state after one more record.
    pub fn apply(&mut self, record: &Record) {
        self.sequence = record.sequence;
        self.time = self.time.max(record.time);
        self.apply_event(record);
        self.refresh_tasks(record);
        self.forget_finished();
    }

    fn apply_event(&mut self, record: &Record) {
        let now = self.time;
        match &record.event {
            Event::ClusterInitialised { cluster_id, public_key } => self.initialised(cluster_id.0, *public_key),
            Event::SettingsChanged { settings } => self.settings_changed(settings, record.sequence),
            Event::QueueSet { queue } => self.queue_set(queue),
            Event::QueueRemoved { name } => {
                self.queues.remove(name.as_str());
            }
            Event::LicenceSet { name, total } => self.licence_set(name, *total),
            Event::NodeAdded { node, spec } => self.node_added(*node, spec, now),
            Event::NodeChanged { node, spec } => self.node_changed(*node, spec),
            Event::NodeRemoved { node } => self.node_removed(*node),
            Event::NodeUp { node, boot_id } => self.node_up(*node, boot_id, now),
            Event::NodeLost { node, reason } => self.node_lost(*node, reason, now),
            Event::NodeResumed { node } => self.node_drained(*node, None),
            Event::JobSubmitted { job, owner, spec } => self.job_submitted(*job, owner, spec, record),
            Event::JobHeld { job, holds, .. } => self.holds_changed(*job, |now_held| now_held.union(*holds)),
            Event::JobReleased { job, holds } => self.holds_changed(*job, |now_held| now_held.without(*holds)),
            Event::JobModified { job, change } => self.job_modified(*job, change, now),
            Event::JobEligible { job } => self.job_eligible(*job, now),
            Event::JobsWaiting { reasons } => self.jobs_waiting(reasons),
            Event::RunAllocated { job, run, placement } => self.run_allocated(*job, *run, placement, now),
            Event::RunNodeStarted { run, node, .. } => self.part_started(*run, *node),
            Event::RunStarted { job, run, node } => self.run_started(*job, *run, *node, now),
            Event::RunStopping { run, reason, .. } => self.change_run(*run, |run| run.stopping = Some(*reason)),
            Event::RunNodeEnded { run, node, exit, .. } => {
                self.part_ended(*run, *node, exit);
                self.left_part_ended(*run, *node);
            }
            Event::RunEnded { job, run, outcome, usage, .. } => self.run_ended(*job, *run, outcome, *usage, now),
            Event::JobRequeued { job, reason } => self.job_requeued(*job, *reason, now),
            Event::JobFinished { job, outcome } => self.job_finished(*job, outcome, now),
            Event::TasksFinished { job, indices, outcome } => self.tasks_finished(*job, indices, outcome, now),
            Event::JobSuspended { run, .. } => self.suspension_changed(*run, Suspension::Suspended),
            Event::RunCoresLent { run, .. } => {
                self.suspension_changed(*run, Suspension::Lent);
                self.note_freed();
            }
            Event::JobResuming { run, .. } => self.suspension_changed(*run, Suspension::Resuming(record.sequence)),
            Event::JobResumed { run, .. } => self.suspension_changed(*run, Suspension::Resumed),
            Event::StepStarted { run, step, tasks, .. } => self.step_started(*run, *step, tasks),
            Event::StepNodeEnded { run, step, node, exit, .. } => self.step_part_ended(*run, *step, *node, exit),
            Event::StepEnded { job, run, step, .. } => self.step_ended(*job, *run, *step, now),
            Event::NotificationDone { job, of, notification, .. } => self.notified(*job, *of, *notification),
            Event::RangeArchived { last, .. } => self.archived = self.archived.max(*last),
            Event::RunNumbersRaised { next } => self.next_run = self.next_run.max(next.0),
            Event::JobNumbersSet { first } => self.job_numbers_set(*first),
            Event::PolicySet { policy } => self.policy_set(policy),
            Event::ReservationSet { reservation } => self.reservation_set(reservation),
            Event::ReservationPlaced { name, nodes } => self.reservation_placed(name, nodes),
            Event::ReservationBegun { name } => self.change_reservation(name, |reservation| reservation.begun = true),
            Event::ReservationRemoved { name } => self.reservation_removed(name),
            Event::NodeClosuresSet { node, closures } => self.node_closures_set(*node, closures),
            Event::Planned { plan } => self.planned(plan),
            Event::BackfillPassed { pass } => self.backfill_passed(pass),
            Event::JobReceived { .. }
            | Event::JobConfigured { .. }
            | Event::JobEntered { .. }
            | Event::JobValidated { .. }
            | Event::JobQueued { .. }
            | Event::FilterChainStarted { .. }
            | Event::FilterInvoked { .. }
            | Event::FilterElsewhere { .. }
            | Event::FilterOfferedAgain { .. }
            | Event::JobEndRequested { .. }
            | Event::FilterVerdict { .. }
            | Event::FilterChainPassed { .. }
            | Event::FilterChainFailed { .. }
            | Event::FilterReverted { .. }
            | Event::FilterRevertFailed { .. }
            | Event::FilterRevertSkipped { .. }
            | Event::FilterRollbackCompleted { .. }
            | Event::FilterRunnersMissing { .. }
            | Event::JobHeldUntil { .. }
            | Event::JobHoldEnded { .. }
            | Event::JobWarned { .. }
            | Event::JobMessage { .. }
            | Event::QueueBlocked { .. }
            | Event::QueueUnblocked { .. }
            | Event::ResourcesReserved { .. }
            | Event::ResourcesReleased { .. }
            | Event::RunBackfilled { .. }
            | Event::GrowthRejected { .. }
            | Event::FilterSettingsSet { .. }
            | Event::TemplateSet { .. }
            | Event::TemplateRemoved { .. }
            | Event::PlannerStarted { .. } => self.filters_changed(record),
            Event::SchedulingSet { settings, .. } => self.scheduling = settings.clone(),
            Event::StagingSet { settings, .. } => self.set_staging(settings),
            Event::RunShrinking { reason, .. } => {
                if reason.is_rebalancing() {
                    self.rebalanced = Some(record.time);
                }
                self.tasks_changed(record);
            }
            Event::RunGrown { .. }
            | Event::RunShrunk { .. }
            | Event::TaskStarted { .. }
            | Event::TasksStopping { .. } => self.tasks_changed(record),
            Event::StepLaunched { .. }
            | Event::StepStopping { .. }
            | Event::StepTasksEnded { .. }
            | Event::JobKept { .. } => self.sessions_changed(record),
            Event::ComponentHeld { .. }
            | Event::ComponentReleased { .. }
            | Event::ComponentStopping { .. }
            | Event::ComponentEnded { .. } => self.component_changed(record),
            Event::AccountsChanged { changes } => self.accounts_changed(changes),
            Event::AccountSettingsChanged { settings } => self.account_settings_changed(settings),
            Event::ClassChanged { job, component, class } => self.class_changed(*job, *component, class),
            Event::NodeTakenOut { .. } | Event::JobAltered { .. } => self.altered(record),
            Event::RunPartStarted { .. } | Event::RunPartEnded { .. } | Event::StepPartEnded { .. } => {
                self.shared_part_changed(&record.event);
            }
            Event::JobTold { .. }
            | Event::CommandRefused { .. }
            | Event::JobSignalled { .. }
            | Event::StepSignalled { .. }
            | Event::StepTermsSet { .. }
            | Event::Checkpoint { .. }
            | Event::StartRefused { .. }
            | Event::FilterLateResult { .. } => {}
        }
    }

    /// Changes a job, if there is one, and keeps the index in step.
    fn change_job(&mut self, id: JobId, change: impl FnOnce(&mut Job)) {
        if let Some(job) = self.jobs.get_mut(&id) {
            let before = JobKeys::of(job);
            let load_before = Submitted::load(&self.accounts, job);
            let name = job.name.clone();
            change(job);
            let after = JobKeys::of(job);
            if before.is_singleton && !after.is_singleton {
                job.count_singletons_ahead(self.index.namesakes_ahead(&job.owner.user, &name, id.whole()));
            }
            let is_staging_changed = before.to_stage != after.to_stage;
            let is_namesake_changed = before.namesake != after.namesake;
            let namesakes = is_namesake_changed.then(|| [before.namesake.clone(), after.namesake.clone()]);
            self.index.move_job(id, before, after);
            let load_after = Submitted::load(&self.accounts, job);
            if load_before != load_after {
                load_before.iter().for_each(|load| self.index.submitted.subtract(&self.accounts, load));
                load_after.iter().for_each(|load| self.index.submitted.add(&self.accounts, load));
            }
            if is_staging_changed {
                self.refresh_staging(id);
            }
            for (owner, name) in namesakes.into_iter().flatten().flatten() {
                self.refresh_namesakes(&owner.user, &name);
            }
        }
    }

    /// Puts a job in.
    fn add_job(&mut self, job: Job) {
        self.index.add_job(&job);
        if let Some(load) = Submitted::load(&self.accounts, &job) {
            self.index.submitted.add(&self.accounts, &load);
        }
        let id = job.id;
        let is_staged = job.staging.is_some();
        self.jobs.insert(id, Box::new(job));
        if is_staged {
            self.refresh_staging(id);
        }
    }

    /// Takes a job out.
    fn remove_job(&mut self, id: JobId) {
        let Some(job) = self.jobs.remove(&id) else { return };
        self.index.remove_job(&job);
        if let Some(load) = Submitted::load(&self.accounts, &job) {
            self.index.submitted.subtract(&self.accounts, &load);
        }
        if id.index.is_none() {
            self.altered.attributes.remove(&id);
        }
        for component in &job.components {
            self.shapes.give_back(&component.shape);
        }
        self.forget_numbers(id.number);
    }

    /// Changes a run, if there is one, and keeps the index in step.
    fn change_run(&mut self, id: RunId, change: impl FnOnce(&mut Run)) {
        if let Some(run) = self.runs.get_mut(&id) {
            let before = run.due();
            change(run);
            self.index.move_run(id, before, run.due());
        }
    }

    /// Finished jobs leave the state when they are old enough. One that waiting jobs depend on, or whose filters have not
    /// all taken back what they did, stays for as long again.
    fn forget_finished(&mut self) {
        let now = self.time;
        while let Some((time, id)) = self.index.retention.first().copied()
            && time < now
        {
            if self.index.dependents.contains_key(&id) || self.job(id).is_some_and(is_rolled_back) {
                let again = retention_from(self, now);
                self.change_job(id, |job| {
                    if let Phase::Finished(finished) = &mut job.phase {
                        finished.forget_after = again;
                    }
                });
            } else {
                self.remove_job(id);
            }
        }
    }

    /// Rebuilds the index, after the core came from elsewhere.
    pub(crate) fn rebuild_index(&mut self) {
        self.index = Index::of(self);
    }
}

/// Whether filters are still to take back what they did for the job.
fn is_rolled_back(job: &Job) -> bool {
    job.filtering.as_ref().is_some_and(|filtering| filtering.chain.is_some())
}

/// Until when a job that finishes now stays in the state. At least a second, so that a loop over what is due ends.
fn retention_from(state: &State, now: Timestamp) -> Timestamp {
    let seconds = i64::try_from(state.settings().finished_job_retention_seconds).unwrap_or(i64::MAX);
    now.plus_seconds(seconds.max(1))
}
