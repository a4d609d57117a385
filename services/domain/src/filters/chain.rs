//! Rules for all chains of filters: the meaning of answers, rollback, and the consequences.

use crate::{
    filters::{Chain, JobFilters, Passed},
    jobs::Job,
};
use muster_schemas::{
    JobId,
    event::Event,
    filter::{CallId, ChainSpec, ChainVerdict, FilterAction, FilterForm, FilterReport, JobWarning},
};
use std::sync::Arc;

/// Warnings about a job, for people.
pub(crate) fn warned(job: JobId, warnings: Vec<JobWarning>) -> impl Iterator<Item = Event> {
    warnings.into_iter().map(move |warning| Event::JobWarned { job, warning: Arc::new(warning) })
}

/// The call of a chain that asks a filter to undo its work.
pub(crate) fn revert_call(job: JobId, chain: &ChainSpec, position: u32) -> CallId {
    CallId { job, kind: chain.kind, chain: chain.number, position, action: FilterAction::Revert }
}

/// The component of a call that is not about the whole job. Submission filters judge components one by one, each by all
/// filters (SL-S-21); components are also staged one by one.
pub(crate) fn component(chain: &ChainSpec, position: u32) -> Option<u32> {
    chain.filters.get(position as usize)?.component
}

/// The message that a filter wants shown on the job.
pub(crate) fn message(job: &Job, chain: &ChainSpec, position: u32, report: &FilterReport) -> Option<String> {
    report.message.as_ref().map(|text| format!("{}{text}", whose(job, chain, position)))
}

/// The prefix of everything that a filter says about one of several components: `1: ` (SL-S-12).
pub(crate) fn whose(job: &Job, chain: &ChainSpec, position: u32) -> String {
    let of_several = component(chain, position).filter(|_| job.components.len() > 1);
    of_several.map(|component| format!("{component}: ")).unwrap_or_default()
}

/// Whether a filter can be asked to undo its work (HPC-F-56).
pub(crate) fn can_revert(chain: &ChainSpec, position: u32) -> bool {
    chain.filters.get(position as usize).is_some_and(|filter| filter.spec.form != FilterForm::Exec)
}

/// Whether the check after the filters is needed once all have passed: there is a description to build the job from.
pub(crate) fn needs_validation(filters: &JobFilters, passed: &[Passed]) -> bool {
    filters.received.is_some() || filters.validated.is_some() || passed.iter().any(|passed| passed.changed.is_some())
}

/// Continues a rollback: skips filters that cannot be reverted and calls the next that can; when none is left, the
/// rollback is complete. `passed` holds the filters still to be rolled back.
pub(crate) fn go_on_with_rollback(job: JobId, chain: &ChainSpec, passed: &[u32]) -> Vec<Event> {
    let mut events = Vec::new();
    // Files staged in are staged out after the end of the job; that is no rollback.
    for position in passed.iter().rev().filter(|_| !chain.kind.is_staging()) {
        if can_revert(chain, *position) {
            return events;
        }
        let name = chain.filters.get(*position as usize).map_or("", |filter| filter.spec.name.as_str());
        let reason = format!("filter '{name}' is called in a way that cannot be reverted");
        events.push(Event::FilterRevertSkipped { call: revert_call(job, chain, *position), reason });
    }
    events.push(Event::FilterRollbackCompleted { job, kind: chain.kind, chain: chain.number });
    events
}

/// The end of a chain that does not pass.
pub(crate) struct Failure {
    /// The meaning of the answer.
    pub(crate) verdict: ChainVerdict,
    /// The position of the filter that ended it; one past the last if none did.
    pub(crate) position: u32,
    /// The reason, for people.
    pub(crate) message: String,
}

/// The end of a chain that does not pass, its consequences, and the part of the rollback that needs no runner
/// (HPC-F-51, HPC-E-03). `last` is the filter that answered last, if it is rolled back together with those that passed
/// before.
pub(crate) fn fail(job: JobId, chain: &Chain, last: Option<u32>, failure: Failure, follows: Vec<Event>) -> Vec<Event> {
    let Failure { verdict, position, message } = failure;
    if chain.spec.filters.is_empty() {
        return follows;
    }
    let (kind, number) = (chain.spec.kind, chain.spec.number);
    let mut events = vec![Event::FilterChainFailed { job, kind, chain: number, verdict, position, message }];
    events.extend(follows);
    let passed: Vec<u32> = chain.passed.iter().map(|passed| passed.position).chain(last).collect();
    events.extend(go_on_with_rollback(job, &chain.spec, &passed));
    events
}
