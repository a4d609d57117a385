//! Chains of filters, templates, and holds until a time.

mod intake;
mod offers;

use crate::{
    filters::{Chain, Entry, JobFilters, OutstandingCall, Passed, Refusal, Told, chain, verdict::Answer},
    jobs::Job,
    state::State,
    unapplied::no_arm,
};
use muster_schemas::{
    JobId, Sequence, Timestamp,
    event::{Event, HoldBy, Record},
    filter::{
        CallId, ChainSpec, ChainVerdict, FileAfter, FilterAction, FilterKind, FilterReport, JobWarning, TemplateSpec,
    },
};
use std::sync::Arc;

/// The number of warnings kept per job; all are in the log.
const MAX_WARNINGS: usize = 100;

impl State {
    pub(crate) fn filters_changed(&mut self, record: &Record) {
        let now = self.time;
        match &record.event {
            Event::JobConfigured { job, spec, intake } => self.job_configured(*job, spec, intake, record),
            Event::JobEntered { job } => self.job_entered(*job, now),
            Event::JobValidated { job, validated } => self.job_validated(*job, validated, record),
            Event::JobQueued { job } => self.change_filters(*job, |filters| {
                filters.entry = Entry::Entered;
                filters.chain = None;
            }),
            Event::JobHeldUntil { job, until, by } => self.held_until(*job, Some((*until, *by))),
            Event::JobHoldEnded { job, .. } => self.held_until(*job, None),
            Event::JobEndRequested { job, outcome } => {
                self.change_filters(*job, |filters| filters.ends_after_verdict = Some(outcome.clone()));
            }
            Event::JobWarned { job, warning } => self.change_filters(*job, |filters| warn(filters, warning)),
            Event::JobMessage { job, text } => {
                self.change_filters(*job, |filters| filters.message = Some(text.clone()));
            }
            Event::QueueBlocked { job, priority } => {
                self.filters.blocks.insert(*job, *priority);
            }
            Event::QueueUnblocked { job } => {
                if self.filters.blocks.remove(job).is_some() {
                    self.note_freed();
                }
            }
            Event::ResourcesReserved { job, run, placement } => self.resources_reserved(*job, *run, placement),
            Event::ResourcesReleased { job, .. } => self.resources_released(*job),
            Event::RunBackfilled { job, .. } => self.change_filters(*job, |filters| filters.is_backfill = true),
            Event::FilterSettingsSet { settings, .. } => self.filters.settings = settings.clone(),
            Event::TemplateSet { template, .. } => self.template_set(template),
            Event::TemplateRemoved { old } => {
                self.filters.templates.remove(&old.name.to_lowercase());
            }
            Event::PlannerStarted { epoch } => self.filters.planner_epoch = *epoch,
            _ => self.chain_changed(record, now),
        }
    }

    fn chain_changed(&mut self, record: &Record, now: Timestamp) {
        match &record.event {
            Event::FilterChainStarted { job, chain } => self.chain_started(*job, chain),
            Event::FilterInvoked { call, attempt, runner } => {
                self.filters.runners_missing = None;
                self.change_call(call, |outstanding| {
                    outstanding.attempt = *attempt;
                    outstanding.claimed = Some((runner.as_str().into(), now));
                });
            }
            Event::FilterElsewhere { call, runner } => self.change_call(call, |outstanding| {
                outstanding.offered = record.sequence;
                outstanding.attempt += 1;
                outstanding.claimed = None;
                outstanding.absent_on = Some((runner.as_str().into(), now));
            }),
            Event::FilterOfferedAgain { call, attempt } => self.change_call(call, |outstanding| {
                outstanding.offered = record.sequence;
                outstanding.attempt = *attempt;
                outstanding.claimed = None;
            }),
            Event::FilterVerdict { call, report } => self.verdict(call, report, (record.sequence, now)),
            Event::FilterChainPassed { job, kind, chain } => {
                self.chain_passed(*job, *chain);
                if kind.is_staging() {
                    self.staging_passed(*job, *kind);
                }
            }
            Event::FilterChainFailed { job, kind, chain, verdict, position, message } => {
                self.chain_failed(*job, *chain, (*verdict, *position), (record.sequence, now));
                self.staging_failed(*job, *kind, message);
            }
            Event::FilterReverted { call, report } | Event::FilterRevertFailed { call, report } => {
                self.note_program(call, report);
                self.reverted(call, (record.sequence, now));
            }
            Event::FilterRevertSkipped { call, .. } => self.reverted(call, (record.sequence, now)),
            Event::FilterRollbackCompleted { job, chain, .. } => self.change_filters(*job, |filters| {
                if filters.chain.as_ref().is_some_and(|known| known.spec.number == *chain) {
                    filters.chain = None;
                }
            }),
            Event::FilterRunnersMissing { since, .. } => self.filters.runners_missing = Some(*since),
            event => no_arm(event),
        }
    }

    fn template_set(&mut self, template: &Arc<TemplateSpec>) {
        self.filters.template_revisions = self.filters.template_revisions.max(template.revision);
        self.filters.templates.insert(template.name.to_lowercase(), template.clone());
    }

    /// Changes the filter state of a job, if the job exists, and updates the index.
    pub(crate) fn change_filters(&mut self, id: JobId, change: impl FnOnce(&mut JobFilters)) {
        self.change_job(id, |job| change(job.filters.get_or_insert_default()));
    }

    fn change_call(&mut self, call: &CallId, change: impl FnOnce(&mut OutstandingCall)) {
        self.change_chain(call.job, |chain| {
            if let Some(outstanding) = chain.call.as_mut().filter(|outstanding| outstanding.id == *call) {
                change(outstanding);
            }
        });
    }

    /// Changes the chain of a job, if it has one.
    fn change_chain(&mut self, id: JobId, change: impl FnOnce(&mut Chain)) {
        self.change_job(id, |job| {
            if let Some(chain) = job.filters.as_mut().and_then(|filters| filters.chain.as_mut()) {
                change(chain);
            }
        });
    }

    fn held_until(&mut self, id: JobId, hold: Option<(Timestamp, HoldBy)>) {
        self.change_filters(id, |filters| filters.hold = hold);
        self.change_job(id, |job| job.planner_reason = None);
        if hold.is_some() {
            self.void_plans(id);
        }
    }

    fn chain_started(&mut self, id: JobId, spec: &Arc<ChainSpec>) {
        self.filters.last_chain = self.filters.last_chain.max(spec.number);
        if !self.jobs.contains_key(&id) {
            self.materialise(id);
        }
        self.set_aside(id, spec);
        self.void_plans(id);
        let at = (self.sequence, self.time);
        self.change_job(id, |job| {
            let told = told(job);
            let filters = job.filters.get_or_insert_default();
            let was_reserved = filters.reserved.is_some();
            let mut chain = new_chain(spec.clone(), told, at.0);
            chain.was_reserved = was_reserved;
            chain.call = Some(OutstandingCall::new(&chain, id, 0, FilterAction::Filter, at));
            if spec.kind == FilterKind::Submission {
                filters.entry = Entry::Filtering;
            }
            filters.chain = Some(Box::new(chain));
        });
        if spec.kind.is_staging() {
            self.staging_began(id, spec.kind);
        }
    }

    /// The check after the filters, without any filter before it.
    pub(crate) fn validation_began(&mut self, id: JobId) {
        let number = self.filters.last_chain + 1;
        self.filters.last_chain = number;
        let at = (self.sequence, self.time);
        let limit_seconds = self.filters.settings.submission_timeout_seconds;
        let spec = ChainSpec { number, kind: FilterKind::Submission, filters: Vec::new(), limit_seconds, offer: None };
        self.change_job(id, |job| {
            let mut chain = new_chain(Arc::new(spec), told(job), at.0);
            chain.call = Some(OutstandingCall::new(&chain, id, 0, FilterAction::Filter, at));
            let filters = job.filters.get_or_insert_default();
            filters.entry = Entry::Validating;
            filters.chain = Some(Box::new(chain));
        });
    }

    fn verdict(&mut self, call: &CallId, report: &FilterReport, at: (Sequence, Timestamp)) {
        self.note_program(call, report);
        self.staged(call, report, at.1);
        self.change_job(call.job, |job| {
            let chain = job.filters.as_ref().and_then(|filters| filters.chain.as_deref());
            let message = chain.and_then(|chain| chain::message(job, &chain.spec, call.position, report));
            let filters = job.filters.get_or_insert_default();
            let Some(mut chain) = filters.chain.take() else { return };
            if chain.call.as_ref().is_some_and(|outstanding| outstanding.id == *call) {
                if call.kind.is_staging() {
                    report.warnings.iter().for_each(|warning| warn(filters, warning));
                    filters.message = message.or(filters.message.take());
                }
                take_answer(filters, &mut chain, call, report, at);
            }
            filters.chain = Some(chain);
        });
    }

    fn chain_passed(&mut self, id: JobId, number: u64) {
        let is_known = |chain: &Chain| chain.spec.number == number;
        let known = self.job(id).and_then(|job| job.filters.as_ref()?.chain.as_deref()).filter(|chain| is_known(chain));
        if known.is_none() {
            return;
        }
        self.give_back_offer(id);
        self.change_filters(id, |filters| {
            let Some(chain) = filters.chain.take() else { return };
            match &chain.spec.offer {
                Some(offer) if !offer.preempts.is_empty() => {
                    filters.is_granted = true;
                    filters.granted_by = Some(chain);
                }
                Some(offer) if !offer.growth => filters.reserved = None,
                _ => {}
            }
        });
    }

    fn chain_failed(
        &mut self,
        id: JobId,
        number: u64,
        (verdict, position): (ChainVerdict, u32),
        at: (Sequence, Timestamp),
    ) {
        self.give_back_offer(id);
        self.take_reserved_again(id);
        let retry = i64::from(self.filters.settings.retry_interval_seconds);
        self.change_filters(id, |filters| {
            if filters.granted_by.as_ref().is_some_and(|chain| chain.spec.number == number) {
                filters.chain = filters.granted_by.take();
                filters.is_granted = false;
            }
            let Some(chain) = filters.chain.as_mut().filter(|chain| chain.spec.number == number) else { return };
            chain.failure = Some(verdict);
            chain.call = next_revert(chain, id, at);
            if chain.spec.kind == FilterKind::Activation {
                let filter = chain.spec.filters.get(position as usize);
                filters.refusal = filter.filter(|_| verdict != ChainVerdict::Fail).map(|filter| Refusal {
                    at: at.1,
                    verdict,
                    filter: filter.spec.name.as_str().into(),
                    ask_again: at.1.plus_seconds(retry),
                });
            }
        });
    }

    fn reverted(&mut self, call: &CallId, at: (Sequence, Timestamp)) {
        self.change_chain(call.job, |chain| {
            let is_next = chain.passed.last().is_some_and(|passed| passed.position == call.position);
            if chain.spec.number == call.chain && is_next {
                chain.passed.pop();
                chain.call = next_revert(chain, call.job, at);
            }
        });
    }

    /// Runners report which program they found: the next chain records it before its calls (HPC-F-04).
    fn note_program(&mut self, call: &CallId, report: &FilterReport) {
        let Some(hash) = &report.program_hash else { return };
        let chain = self.job(call.job).and_then(|job| job.filters.as_ref()?.chain.as_ref());
        let filter = chain.and_then(|chain| chain.spec.filters.get(call.position as usize));
        let Some(path) = filter.map(|filter| filter.spec.path.clone()) else { return };
        self.filters.program_hashes.insert(path, hash.clone());
    }
}

fn warn(filters: &mut JobFilters, warning: &JobWarning) {
    if filters.warnings.len() < MAX_WARNINGS && !filters.warnings.contains(warning) {
        filters.warnings.push(warning.clone());
    }
}

fn told(job: &Job) -> Told {
    let lead = job.lead();
    Told {
        name: job.name.clone(),
        priority: lead.priority,
        walltime_seconds: lead.shape.alternatives.first().and_then(|alternative| alternative.walltime_seconds),
        alternatives: lead.shape.alternatives.clone(),
    }
}

fn new_chain(spec: Arc<ChainSpec>, told: Told, started: Sequence) -> Chain {
    Chain {
        spec,
        started,
        call: None,
        passed: Vec::new(),
        failure: None,
        is_withdrawn: false,
        was_reserved: false,
        told,
    }
}

/// The call that asks the next filter to undo its work; `None` if none is left, or the next cannot (HPC-F-56).
fn next_revert(chain: &Chain, job: JobId, at: (Sequence, Timestamp)) -> Option<OutstandingCall> {
    let position = chain.passed.last()?.position;
    let reverts = chain::can_revert(&chain.spec, position);
    reverts.then(|| OutstandingCall::new(chain, job, position, FilterAction::Revert, at))
}

/// Takes the answer of a filter: adds the filter to those that passed if it did, and makes the next call outstanding,
/// if any.
fn take_answer(
    filters: &mut JobFilters,
    chain: &mut Chain,
    call: &CallId,
    report: &FilterReport,
    at: (Sequence, Timestamp),
) {
    chain.call = None;
    let spec = chain.spec.clone();
    let Some(filter) = spec.filters.get(call.position as usize) else { return };
    let answer = Answer { filter: &filter.spec, limit_seconds: spec.limit_seconds, report };
    if answer.is_rolled_back(spec.kind) {
        let changed = (spec.kind == FilterKind::Submission && answer.changes()).then_some(at.0);
        let template = match &report.file {
            FileAfter::Changed { template, .. } if changed.is_some() => template.as_deref().map(Arc::from),
            _ => None,
        };
        chain.passed.push(Passed { position: call.position, changed, template });
    }
    if !answer.passes(spec.kind) || filters.ends_after_verdict.is_some() {
        return;
    }
    let next = call.position + 1;
    let is_validation = next >= chain.end();
    let needs_call =
        !is_validation || spec.kind == FilterKind::Submission && chain::needs_validation(filters, &chain.passed);
    if needs_call {
        chain.call = Some(OutstandingCall::new(chain, call.job, next, FilterAction::Filter, at));
        if is_validation {
            filters.entry = Entry::Validating;
        }
    }
}
