//! Chains, blocks and kept resources.

use crate::{
    filters::{Chain, Entry, JobFilters},
    invariants::ensure,
    jobs::Job,
    state::State,
};
use muster_schemas::{
    filter::{FilterAction, FilterKind},
    resources::Placement,
};

/// The resources kept for waiting jobs, as a run would have them.
pub(crate) fn kept(state: &State) -> impl Iterator<Item = (&Job, &std::sync::Arc<Placement>)> {
    let jobs = state.jobs().filter(|job| is_kept(job));
    jobs.filter_map(|job| Some((job, job.filters.as_ref()?.kept()?.1)))
}

/// Whether something is kept for a waiting job, so that it counts as running.
pub(crate) fn is_kept(job: &Job) -> bool {
    job.filters.as_ref().is_some_and(|filters| filters.kept().is_some())
}

pub(crate) fn check(state: &State) -> Result<(), String> {
    for job in state.jobs() {
        if let Some(filters) = job.filters.as_deref() {
            self::filters(state, job, filters).map_err(|what| format!("job {}: {what}", job.id))?;
        }
    }
    for (id, priority) in &state.filters.blocks {
        let blocker = state.job(*id).filter(|job| job.is_waiting());
        let found = blocker.map(|job| job.lead().priority);
        ensure(found == Some(*priority), || format!("job {id} blocks priority {priority}, it has {found:?}"))?;
        let is_held = blocker.is_some_and(|job| {
            !job.holds().is_empty() || job.filters.as_ref().is_some_and(|filters| filters.hold.is_some())
        });
        ensure(!is_held, || format!("job {id} is held and blocks others"))?;
    }
    Ok(())
}

fn filters(state: &State, job: &Job, filters: &JobFilters) -> Result<(), String> {
    let is_kept = filters.kept().is_some();
    ensure(!is_kept || job.is_waiting(), || "something is kept for it and it does not wait".into())?;
    let has_run_number = filters.kept().is_none_or(|(run, _)| run < state.next_run() && state.run(run).is_none());
    ensure(has_run_number, || "what is kept for it has the number of another run".into())?;
    let is_held = filters.hold.is_some() || !job.holds().is_empty();
    ensure(!(is_held && is_kept), || "it is held and something is kept for it".into())?;
    ensure(filters.is_granted == filters.granted_by.is_some(), || "it is granted a start by no chain".into())?;
    ensure(!filters.is_granted || job.is_waiting(), || "it is granted a start and does not wait".into())?;
    ensure(filters.hold.is_none() || job.is_waiting(), || "it is held and does not wait".into())?;
    let is_entering = matches!(filters.entry, Entry::Filtering | Entry::Validating);
    ensure(!is_entering || filters.chain.is_some(), || "it is judged by nobody".into())?;
    ensure(filters.entry != Entry::Refused || job.is_finished(), || "it was refused and is not over".into())?;
    filters.chain.as_deref().map_or(Ok(()), |chain| self::chain(job, filters, chain))
}

/// A chain always waits for one answer, from a filter that has not answered yet or that is undoing its work (HPC-F-84).
fn chain(job: &Job, filters: &JobFilters, chain: &Chain) -> Result<(), String> {
    let call = chain.call.as_ref().ok_or("a chain without an outstanding call")?;
    let is_own = call.id.job == job.id && call.id.chain == chain.spec.number && call.id.kind == chain.spec.kind;
    ensure(is_own, || format!("call {} belongs to another chain", call.id))?;
    ensure((1..=3).contains(&call.attempt), || format!("call {} has attempt {}", call.id, call.attempt))?;
    let in_order = chain.passed.windows(2).all(|pair| pair[0].position < pair[1].position);
    ensure(in_order, || "filters passed out of order".into())?;
    let last = chain.passed.last().map(|passed| passed.position);
    match call.id.action {
        FilterAction::Filter => {
            ensure(chain.failure.is_none(), || "a chain that failed judges".into())?;
            ensure(last.is_none_or(|last| last < call.id.position), || "a filter is asked again".into())?;
            ensure(call.id.position as usize == chain.passed.len(), || "a filter was left out".into())
        }
        FilterAction::Revert => {
            ensure(chain.failure.is_some(), || "a chain that judges is rolled back".into())?;
            ensure(last == Some(call.id.position), || "filters are not reverted from the last".into())
        }
    }?;
    let is_submission = chain.spec.kind == FilterKind::Submission;
    let judges = chain.failure.is_none();
    let is_entering = matches!(filters.entry, Entry::Filtering | Entry::Validating);
    ensure(!judges || is_submission == is_entering, || format!("its entry is {:?}", filters.entry))
}
