//! The effect of each event: the only code that changes a state.
//!
//! A record that does not fit the state (muster never writes one) is applied as far as possible, the same way on every
//! machine, and never panics. A record after which free and used resources do not add up to what a node has is
//! reported: it must not be kept.

use crate::{
    nodes::Violation,
    runs::Suspension,
    state::{Reign, State},
};
use muster_schemas::{
    event::{Event, Record},
    node::NodeLoad,
};

impl State {
    /// The state after one more record.
    ///
    /// # Errors
    /// If the record takes resources that are not free on a node, or gives back resources that were not used. The state
    /// is unusable then.
    pub fn apply(&mut self, record: &Record) -> Result<(), Violation> {
        self.sequence = record.sequence;
        self.time = self.time.max(record.time);
        self.apply_event(record);
        self.refresh_tasks(record);
        self.hit_triggers(record);
        self.forget_finished();
        self.fault.take().map_or(Ok(()), |fault| {
            let (kind, verb) = record.event.kind_verb();
            Err(Violation { record: record.sequence, event: format!("{kind}.{verb}"), fault: fault.into() })
        })
    }

    fn apply_event(&mut self, record: &Record) {
        let now = self.time;
        match &record.event {
            Event::ClusterInitialised { cluster_id, public_key } => self.initialised(cluster_id.0, *public_key),
            Event::SettingsChanged { settings } => self.settings_changed(settings, record.sequence),
            Event::QueueSet { queue } => self.queue_set(queue),
            Event::QueueRemoved { name } => {
                self.queues.remove(name.as_str());
                self.index.note_passing(name, None);
            }
            Event::LicenceSet { name, total } => self.licence_set(name, *total),
            Event::NodeAdded { node, spec } => self.node_added(*node, spec, now),
            Event::NodeChanged { node, spec } => self.node_changed(*node, spec),
            Event::NodeRemoved { node } => self.node_removed(*node),
            Event::NodeUp { node, boot_id } => self.node_up(*node, boot_id, now),
            Event::NodeLost { node, reason } => self.node_lost(*node, reason, now),
            Event::NodeResumed { node } => self.node_drained(*node, None),
            Event::NodeGpusChecked { node, faults } => self.node_gpus_checked(*node, faults),
            Event::NodeLoadMeasured { node, load_millionths, system_percent, used } => {
                let load = NodeLoad { millionths: *load_millionths, at: now, system_percent: *system_percent };
                self.node_load_measured(*node, load);
                self.count_measured_use(*node, used, now);
            }
            Event::JobSubmitted { job, owner, spec, intake: None } => self.job_submitted(*job, owner, spec, record),
            Event::JobSubmitted { job, owner, spec, intake: Some(intake) } => {
                self.job_received(*job, owner, spec, intake, record);
            }
            Event::JobHeld { job, holds, .. } => self.holds_changed(*job, |now_held| now_held.union(*holds)),
            Event::JobReleased { job, holds } => self.holds_changed(*job, |now_held| now_held.without(*holds)),
            Event::JobModified { job, change } => self.job_modified(*job, change, now),
            Event::JobEligible { job } => self.job_eligible(*job, now),
            Event::RunAllocated { job, run, placement } => self.run_allocated(*job, *run, placement, now),
            Event::RunPartStarted { run, node, component, .. } => self.part_started(*run, *node, *component),
            Event::RunStarted { job, run, node, component } => {
                self.part_started(*run, *node, *component);
                self.run_started(*job, *run, now);
            }
            Event::RunStopping { run, reason, grace_seconds, .. } => self.change_run(*run, |run| {
                (run.stopping, run.stop_grace_seconds) = (Some(*reason), *grace_seconds);
            }),
            Event::RunPartEnded { run, node, component, exit, .. } => {
                self.part_ended(*run, *node, *component, exit);
                self.left_part_ended(*run, *node);
            }
            Event::RunEnded { job, run, outcome, usage, .. } => self.run_ended(*job, *run, outcome, *usage, now),
            Event::JobRequeued { job, reason } => self.job_requeued(*job, *reason, now),
            Event::JobFinished { job, outcome } => {
                self.job_finished(*job, outcome, now);
                self.repeated_job_over(*job);
            }
            Event::CrontabSet { user, text, jobs } => self.crontab_set(user, text, jobs),
            Event::TasksFinished { job, indices, outcome } => self.tasks_finished(*job, indices, outcome, now),
            Event::JobSuspended { run, lends_cores, makes_way_for, .. } => {
                self.run_suspended(*run, *lends_cores, *makes_way_for, record.sequence);
            }
            Event::JobResuming { run, .. } => self.run_resuming(*run, record.sequence),
            Event::JobResumed { run, .. } => self.suspension_changed(*run, Suspension::Resumed),
            Event::JobSignalled { run, signal, .. } => self.job_signalled(*run, *signal),
            Event::StepSignalled { run, step, component, signal, .. } => {
                self.step_signalled(*run, *step, *component, *signal);
            }
            Event::StepPartEnded { run, step, node, component, exit, .. } => {
                self.step_part_ended(*run, *step, *node, *component, exit);
            }
            Event::StepEnded { job, run, step, .. } => self.step_ended(*job, *run, *step, now),
            Event::NotificationDone { job, of, notification, .. } => self.notified(*job, *of, *notification),
            Event::RangeArchived { last, .. } => self.archived = self.archived.max(*last),
            Event::RunNumbersRaised { next } => self.next_run = self.next_run.max(next.0),
            Event::JobNumbersSet { first } => self.job_numbers_set(*first),
            Event::LogRestored { log_id, next_run, .. } => {
                self.past_names.logs.push((record.sequence, *log_id));
                self.next_run = self.next_run.max(next_run.0);
            }
            Event::PolicySet { policy } => self.policy_set(policy, now),
            // A record for people: the policy in force stays.
            Event::PolicyRefused { .. } | Event::PolicyWarned { .. } | Event::JobSignalDelivered { .. } => {}
            Event::ReservationSet { reservation } => self.reservation_set(reservation, now),
            Event::ReservationPlaced { name, nodes } => self.reservation_placed(name, nodes),
            Event::ReservationBegun { name } => self.reservation_begun(name, now),
            Event::ReservationRemoved { name } => self.reservation_removed(name),
            Event::NodeClosuresSet { node, closures } => self.node_closures_set(*node, closures),
            Event::Planned { plan } => self.planned(plan),
            Event::ProgramCycled { cycle } => self.program_cycled(cycle),
            Event::BackfillPassed { pass } => self.backfill_passed(pass),
            Event::JobConfigured { .. }
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
            | Event::StepWalltimeSet { .. }
            | Event::JobKept { .. } => self.clients_changed(record),
            Event::ComponentHeld { .. }
            | Event::ComponentReleased { .. }
            | Event::ComponentStopping { .. }
            | Event::ComponentEnded { .. } => self.component_changed(record),
            Event::AccountsChanged { changes } => self.accounts_changed(changes),
            Event::AccountSettingsChanged { settings } => self.account_settings_changed(settings, now),
            Event::ClassChanged { job, component, class } => self.class_changed(*job, *component, class),
            Event::NodeTakenOut { node, reason, is_down } => {
                self.node_taken_out(*node, reason, *is_down, &record.actor);
            }
            Event::TriggerSet { .. } | Event::TriggersCleared { .. } | Event::TriggerFired { .. } => {
                self.triggers_changed(record);
            }
            Event::CopyingBegan { .. } | Event::CopyingEnded { .. } | Event::CopyingFailed { .. } => {
                self.copying_changed(record);
            }
            Event::LedgerLeads { epoch, ledger, stream_created } => {
                let (ledger, stream_created) = (ledger.clone(), *stream_created);
                self.reign = Some(Reign { epoch: *epoch, ledger, stream_created, since: record.sequence });
            }
            Event::PowerAsked { .. }
            | Event::PowerOrdered { .. }
            | Event::PowerTold { .. }
            | Event::NodeAsleep { .. }
            | Event::NodePowerFailed { .. }
            | Event::RunAwake { .. } => self.power_changed(record),
            Event::JobTold { .. }
            | Event::CommandRefused { .. }
            | Event::Checkpoint { .. }
            | Event::StartRefused { .. }
            | Event::GrowthRejected { .. }
            | Event::LedgerHandsOver { .. }
            | Event::FilterLateResult { .. } => {}
        }
    }
}
