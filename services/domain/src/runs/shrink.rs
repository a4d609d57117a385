//! Running jobs that give up nodes because somebody asked for it, while they continue on the others.
//!
//! A list of tasks is made smaller by the planner instead (`tasks`), for its own reasons, and in its own unit.

use crate::{
    components::decide::steps_over,
    decide::{Access, Decision, conflict, invalid, not_found},
    jobs::{Job, ProgramKind},
    runs::{Part, Run},
    state::State,
    steps::AtOnce,
    validate,
};
use muster_schemas::{
    JobId, NodeId, StepId,
    command::Refusal,
    event::{Event, NodeExit, ShrinkReason},
    resources::{ComponentPlacement, NodeShare, Placement},
};
use std::{collections::BTreeSet, fmt, sync::Arc};

/// Makes a running job, or one of its components, smaller: it keeps the nodes with these names or, if none is named, this
/// many of its first. Steps with tasks on the others are ended.
pub(crate) fn shrink(
    access: &Access,
    id: JobId,
    component: Option<u32>,
    nodes: Option<u32>,
    keep: &[String],
) -> Result<Decision, Refusal> {
    let (run, component) = resizable(access, access.state.id_meant(id), component)?;
    let who = Who { job: run.job, component: (run.placement.components.len() > 1).then_some(component) };
    let own = run.placement.shares_by_component().filter(|(number, _)| *number == component);
    let shares: Vec<&NodeShare> = own.map(|(_, share)| share).filter(|share| run.keeps(share.node)).collect();
    let kept = match nodes {
        Some(count) if keep.is_empty() => first(who, &shares, count)?,
        None if !keep.is_empty() => named(access.state, who, &shares, keep)?,
        _ => return Err(invalid("nodes: either a number of nodes or their names must be given")),
    };
    let removed: Vec<NodeShare> = shares.into_iter().filter(|share| !kept.contains(&share.node)).cloned().collect();
    if removed.is_empty() {
        return Ok(Decision::done(Vec::new()));
    }
    if let Some(shared) = removed.iter().find(|share| run.is_shared(share.node)) {
        let name = access.state.node_name(shared.node);
        return Err(conflict(format!("{who} cannot give up {name}, where another component is")));
    }
    let gone: BTreeSet<NodeId> = removed.iter().map(|share| share.node).collect();
    let removed = Arc::new(of_run(run, component, removed));
    let mut events = vec![Event::RunShrinking { job: run.job, run: run.id, removed, reason: ShrinkReason::Asked }];
    events.extend(ended_steps(access.state, run, &gone));
    let idle = run.parts.iter().filter(|part| gone.contains(&part.node) && part.has_ended());
    events.extend(idle.map(|part| given_up(run, part)));
    Ok(Decision::done(events))
}

/// The job, or the component of a job with several, that becomes smaller.
#[derive(Clone, Copy)]
struct Who {
    job: JobId,
    component: Option<u32>,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.component {
            None => write!(f, "job {}", self.job),
            Some(component) => write!(f, "component {component} of job {}", self.job),
        }
    }
}

/// The run of a job that can be made smaller, and which of its components.
fn resizable<'a>(access: &Access<'a>, id: JobId, component: Option<u32>) -> Result<(&'a Run, u32), Refusal> {
    let job: &Job = access.state.job(id).ok_or_else(|| not_found(format!("job {id} does not exist")))?;
    access.require_management(job)?;
    let run = job.run().and_then(|run| access.state.run(run));
    let run = run.filter(|run| run.started.is_some() && run.stopping.is_none());
    let run = run.ok_or_else(|| conflict(format!("job {id} does not run: only a running job gives up nodes")))?;
    if run.is_suspended() {
        return Err(conflict(format!("job {id} is suspended: it can give up nodes once it continues")));
    }
    if job.tasks.is_some() {
        return Err(conflict(format!("job {id} is a list of tasks, which grows and shrinks by itself")));
    }
    if job.opens_domain().is_some() {
        return Err(conflict(format!("job {id} holds its nodes for a planning domain, and keeps them all")));
    }
    let number = match component {
        None if job.components.len() > 1 => {
            return Err(conflict(format!("job {id} has several components: it must be said which one gives up nodes")));
        }
        component => component.unwrap_or(0),
    };
    let part = job.components.get(number as usize);
    let part = part.ok_or_else(|| not_found(format!("job {id} has no component {number}")))?;
    if job.single_end(number).is_some() {
        return Err(conflict(format!("component {number} of job {id} is being ended")));
    }
    if part.program == ProgramKind::Tasks {
        return Err(conflict(format!("job {id} is one program on all of its nodes, and needs them all")));
    }
    Ok((run, number))
}

/// The first nodes, this many.
fn first(who: Who, shares: &[&NodeShare], count: u32) -> Result<BTreeSet<NodeId>, Refusal> {
    let has = shares.len();
    match count as usize {
        0 => Err(invalid(format!("nodes: is 0, and {who} keeps at least its first node"))),
        count if count > has => Err(conflict(format!(
            "{who} has {has} nodes and cannot grow to {count}: a running job can only become smaller"
        ))),
        count => Ok(shares.iter().take(count).map(|share| share.node).collect()),
    }
}

/// The nodes that have these names; the first is among them.
fn named(state: &State, who: Who, shares: &[&NodeShare], keep: &[String]) -> Result<BTreeSet<NodeId>, Refusal> {
    let mut kept = BTreeSet::new();
    for name in keep {
        let node = state.node_by_name(name).map(|node| node.id);
        let node = node.filter(|node| shares.iter().any(|share| share.node == *node));
        let stranger = || {
            let name = validate::shown(name);
            invalid(format!("keep: `{name}` is not a node of {who}: a running job can only become smaller"))
        };
        kept.insert(node.ok_or_else(stranger)?);
    }
    match shares.first() {
        Some(lead) if !kept.contains(&lead.node) => {
            let name = state.node_name(lead.node);
            Err(invalid(format!("keep: {who} cannot give up {name}, its first node")))
        }
        _ => Ok(kept),
    }
}

/// These shares of a component.
fn of_run(run: &Run, component: u32, shares: Vec<NodeShare>) -> Placement {
    let mut shares = Some(shares);
    let components = run.placement.components.iter().zip(0..).map(|(placed, number)| ComponentPlacement {
        alternative: placed.alternative,
        shares: if number == component { shares.take().unwrap_or_default() } else { Vec::new() },
    });
    Placement { components: components.collect() }
}

/// Ends the steps with tasks on nodes that are given up, as a whole: a parallel program does not continue without some of
/// its tasks.
fn ended_steps(state: &State, run: &Run, gone: &BTreeSet<NodeId>) -> Vec<Event> {
    let is_hit = |step: StepId| {
        let launched = state.step(run.id, step)?;
        let mut parts = launched.parts.iter();
        let runs = parts.any(|part| gone.contains(&part.share.node) && part.stopping < Some(AtOnce::Yes));
        runs.then_some(step)
    };
    let hit = run.steps.keys().copied().filter_map(is_hit);
    let stopping = |step| Event::StepStopping { job: run.job, run: run.id, step, component: None, is_forced: true };
    hit.map(stopping).collect()
}

/// What follows if a part of a run ended on a node that the run gives up: its parts of steps are over, and its resources
/// are free.
pub(crate) fn left(run: &Run, part: &Part, exit: &NodeExit) -> Vec<Event> {
    let mut events = steps_over(run, &[(part, exit)]);
    events.push(given_up(run, part));
    events
}

fn given_up(run: &Run, part: &Part) -> Event {
    let share = run.share_of(part.node, part.component).cloned();
    let removed = Arc::new(of_run(run, part.component, share.into_iter().collect()));
    Event::RunShrunk { job: run.job, run: run.id, removed }
}
