//! Invariants of runs.

use crate::{
    invariants::ensure,
    jobs::{Job, invariants::numbers},
    state::State,
};
use muster_schemas::RunId;
use std::collections::BTreeSet;

/// Each run belongs to exactly one job, and the nodes of its parts know it.
pub(crate) fn runs_and_jobs(state: &State) -> Result<(), String> {
    let of_jobs: BTreeSet<RunId> = state.jobs().filter_map(Job::run).collect();
    let all: BTreeSet<RunId> = state.runs().map(|run| run.id).collect();
    ensure(of_jobs == all, || format!("jobs have the runs {of_jobs:?}, there are {all:?}"))?;
    for run in state.runs() {
        let id = run.id;
        ensure(state.job(run.job).and_then(Job::run) == Some(id), || format!("run {id}: job {} has another", run.job))?;
        ensure(run.parts.len() == run.placement.shares().count(), || format!("run {id}: parts and shares differ"))?;
        ensure(run.giving_up.iter().all(|node| run.part(*node).is_some()), || {
            format!("run {id}: gives up a node that it does not have")
        })?;
        ensure(!run.parts.iter().all(|part| part.has_ended()), || format!("run {id}: all parts have ended"))?;
        let known = run.nodes().all(|node| state.node(node).is_some_and(|node| node.runs.contains(&id)));
        ensure(known, || format!("run {id}: a node does not list it"))?;
        ensure(id < state.next_run(), || format!("run {id}: its number would be given again"))?;
    }
    for job in state.jobs() {
        ensure(job.id.number < state.next_job_number(), || format!("job {}: its number would be given again", job.id))?;
        ensure(!job.components.is_empty(), || format!("job {} has no component", job.id))?;
    }
    numbers(state)?;
    let unfinished = state.jobs().filter(|job| job.id.index.is_none() && !job.is_finished()).count() as u64;
    ensure(unfinished == state.unfinished_jobs(), || {
        format!("{unfinished} jobs are not over, {} counted", state.unfinished_jobs())
    })
}
