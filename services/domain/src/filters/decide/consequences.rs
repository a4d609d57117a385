//! The effect of other decisions on the chains, blocks and kept resources of the jobs involved.
//!
//! Most jobs have none of these, and most decisions are skipped.

use crate::{
    filters::{
        Chain,
        chain::{self, Failure},
    },
    jobs::Job,
    state::State,
};
use muster_schemas::{
    JobId, NodeId,
    event::{Event, JobChange},
    filter::ChainVerdict,
};
use std::collections::BTreeSet;

/// Adds the consequences for the jobs that the events name: resources kept for a job that is over, held or changed are
/// freed, its chain ends, and it no longer blocks others (HPC-F-23, HPC-F-32, HPC-F-35, HPC-F-39).
pub(crate) fn add(state: &State, events: &mut Vec<Event>) {
    if state.index.kept.is_empty() && state.filters.blocks.is_empty() {
        return;
    }
    if !events.iter().any(|event| concerns(state, event)) {
        return;
    }
    let known = std::mem::take(events);
    let mut settled = Settled::of(&known);
    for event in known {
        let (before, after) = follow(state, &event, &mut settled);
        events.extend(before);
        events.push(event);
        events.extend(after);
    }
}

/// What the events already settle.
#[derive(Default)]
struct Settled {
    unblocked: Vec<JobId>,
    released: Vec<JobId>,
    ended: Vec<JobId>,
    /// Jobs whose request an earlier event of this decision changed: one command can change them by several events.
    resized: BTreeSet<JobId>,
}

impl Settled {
    fn of(events: &[Event]) -> Self {
        let mut settled = Self::default();
        for event in events {
            match event {
                Event::QueueUnblocked { job } => settled.unblocked.push(*job),
                Event::ResourcesReleased { job, .. } | Event::ResourcesReserved { job, .. } => {
                    settled.released.push(*job);
                }
                Event::FilterChainFailed { job, .. } | Event::FilterChainPassed { job, .. } => settled.ended.push(*job),
                _ => {}
            }
        }
        settled
    }
}

fn concerns(state: &State, event: &Event) -> bool {
    match event {
        Event::NodeLost { .. } | Event::NodeTakenOut { .. } => true,
        Event::JobFinished { job, .. }
        | Event::JobHeld { job, .. }
        | Event::ComponentHeld { job, .. }
        | Event::JobHeldUntil { job, .. }
        | Event::JobModified { job, .. }
        | Event::RunAllocated { job, .. } => state.index.kept.contains(job) || state.filters.blocks.contains_key(job),
        _ => false,
    }
}

/// The events before and after an event.
fn follow(state: &State, event: &Event, settled: &mut Settled) -> (Vec<Event>, Vec<Event>) {
    match event {
        Event::JobFinished { job, .. } => over(state, *job, settled),
        Event::JobHeld { job, .. } | Event::ComponentHeld { job, .. } | Event::JobHeldUntil { job, .. } => {
            let mut after = unblocked(state, *job, settled);
            after.extend(released(state, *job, settled));
            after.extend(not_granted(state, *job, "the job is held"));
            (Vec::new(), after)
        }
        Event::JobModified { job, change } => modified(state, *job, change, settled),
        Event::RunAllocated { job, .. } => (Vec::new(), unblocked(state, *job, settled)),
        Event::NodeLost { node, .. } | Event::NodeTakenOut { node, .. } => {
            (Vec::new(), node_gone(state, *node, settled))
        }
        _ => Default::default(),
    }
}

/// A job is over: its chain ends first, if it has not ended yet; the consequences follow.
fn over(state: &State, id: JobId, settled: &Settled) -> (Vec<Event>, Vec<Event>) {
    let mut chain = chain_over(state, id, settled).into_iter();
    let before: Vec<Event> = chain.next().into_iter().collect();
    let mut after: Vec<Event> = unblocked(state, id, settled);
    let chain_goes_on = before.is_empty() && !settled.ended.contains(&id);
    after.extend(if chain_goes_on { released(state, id, settled) } else { released_of(state, id, settled) });
    after.extend(chain);
    after.extend(not_granted(state, id, "the job is over"));
    (before, after)
}

/// The end of a chain that still judges. While a runner has its call the chain continues: the filter's work is undone
/// once it has answered.
fn chain_over(state: &State, id: JobId, settled: &Settled) -> Vec<Event> {
    let is_free = |chain: &&Chain| chain.call.as_ref().is_none_or(|call| call.claimed.is_none());
    let chain = judging(state, id).filter(is_free).filter(|_| !settled.ended.contains(&id));
    let Some(chain) = chain else { return Vec::new() };
    let message = "the job is over".to_owned();
    let failure = Failure { verdict: ChainVerdict::NotNow, position: chain.end(), message };
    chain::fail(id, chain, None, failure, Vec::new())
}

fn judging(state: &State, id: JobId) -> Option<&Chain> {
    let chain = state.job(id)?.filters.as_ref()?.chain.as_deref()?;
    Some(chain).filter(|chain| chain.failure.is_none())
}

fn unblocked(state: &State, job: JobId, settled: &Settled) -> Vec<Event> {
    let blocks = state.filters.blocks.contains_key(&job) && !settled.unblocked.contains(&job);
    if blocks { vec![Event::QueueUnblocked { job }] } else { Vec::new() }
}

/// Frees what is kept for a job, including by a chain that continues.
fn released(state: &State, job: JobId, settled: &Settled) -> Option<Event> {
    let kept = state.job(job)?.filters.as_ref()?.kept()?;
    (!settled.released.contains(&job)).then_some(Event::ResourcesReleased { job, run: kept.0 })
}

/// Frees what was reserved for a job. What a chain has set aside is freed when the chain ends.
fn released_of(state: &State, job: JobId, settled: &Settled) -> Option<Event> {
    let reserved = state.job(job)?.reserved()?;
    (!settled.released.contains(&job)).then_some(Event::ResourcesReleased { job, run: reserved.run })
}

/// A start granted by filters does not happen: they undo their work.
fn not_granted(state: &State, id: JobId, why: &str) -> Vec<Event> {
    let granted = || state.job(id)?.filters.as_ref()?.granted_by.as_deref();
    let Some(chain) = granted() else { return Vec::new() };
    let failure = Failure { verdict: ChainVerdict::NotNow, position: chain.end(), message: why.to_owned() };
    chain::fail(id, chain, None, failure, Vec::new())
}

/// A new size frees what was kept for the old one, before the job changes; a new priority moves a block.
fn modified(state: &State, id: JobId, change: &JobChange, settled: &mut Settled) -> (Vec<Event>, Vec<Event>) {
    let changes_size = change.alternatives.is_some() || change.queue.is_some();
    let mut before = Vec::new();
    if changes_size && state.job(id).is_some_and(Job::is_waiting) && settled.resized.insert(id) {
        before.extend(released(state, id, settled));
        before.extend(not_granted(state, id, "the job asks for something else"));
    }
    let of_lead = change.component.is_none_or(|component| component == 0);
    let priority = change.priority.filter(|_| of_lead && state.filters.blocks.contains_key(&id));
    (before, priority.map(|priority| Event::QueueBlocked { job: id, priority }).into_iter().collect())
}

/// Frees what is kept on a node that no longer serves jobs.
fn node_gone(state: &State, node: NodeId, settled: &mut Settled) -> Vec<Event> {
    let events: Vec<Event> = state.kept_on(node).filter_map(|job| released(state, job, settled)).collect();
    settled.released.extend(events.iter().filter_map(Event::job));
    events
}
