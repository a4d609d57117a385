//! Steps that are started from inside a running job.

pub(super) mod launch;

use super::{Decision, access::Access, conflict, invalid, not_found};
use crate::{
    state::{Job, Run, Step},
    validate,
};
use muster_schemas::{
    JobId, PartId, StepId,
    command::{Refusal, RefusalCode, Reply},
    event::{Event, NodeExit, NodeTasks},
    job::{ExitStatus, Launch, Program},
    resources::NodeShare,
};
use std::sync::Arc;

pub(super) fn start(
    access: &Access,
    job: JobId,
    launch: Launch,
    tasks: Option<u32>,
    nodes: Option<u32>,
) -> Result<Decision, Refusal> {
    validate::launch(&launch)?;
    if !matches!(launch.program, Program::Tasks { .. }) {
        return Err(invalid("launch.program: a step runs a command for each task, not a script"));
    }
    let known = access.state.job(job).ok_or_else(|| not_found(format!("job {job} does not exist")))?;
    access.require_management(known)?;
    let run = known.run().and_then(|run| access.state.run(run)).filter(|run| run.stopping.is_none());
    let run = run.ok_or_else(|| conflict(format!("job {job} does not run")))?;
    require_start(run)?;
    require_cores(run)?;
    let tasks = lay_out(known, run, tasks, nodes)?;
    let step = run.next_step;
    let event = Event::StepStarted { job, run: run.id, step, launch: Arc::new(launch), tasks };
    Ok(Decision { events: vec![event], reply: Reply::Step { run: run.id, step } })
}

/// A node on which the run has not started yet has no place for a part of a step.
fn require_start(run: &Run) -> Result<(), Refusal> {
    if run.started.is_some() {
        return Ok(());
    }
    Err(Refusal::new(RefusalCode::Busy, format!("job {} has not started on all of its nodes", run.job)))
}

/// What starts in a run that has lent its cores would run beside others.
fn require_cores(run: &Run) -> Result<(), Refusal> {
    let (job, code) = (run.job, RefusalCode::Busy);
    if run.has_lent() { Err(Refusal::new(code, format!("job {job} is suspended"))) } else { Ok(()) }
}

/// How many tasks of a step go to which node. Without a number of nodes they fill the job's task places in order; with
/// one they are dealt out evenly to the first so many nodes.
fn lay_out(job: &Job, run: &Run, tasks: Option<u32>, nodes: Option<u32>) -> Result<Vec<NodeTasks>, Refusal> {
    // On a node that components share, such a step is in the first of them.
    let may_use = |component, node| {
        run.part(node).is_some_and(|part| part.component == component) && job.single_end(component).is_none()
    };
    let shares = run.placement.shares_by_component().filter(|(component, share)| may_use(*component, share.node));
    let shares: Vec<&NodeShare> = shares.map(|(_, share)| share).collect();
    let most: u64 = shares.iter().map(|share| share.cores.len().max(u64::from(share.tasks))).sum();
    let wanted =
        tasks.unwrap_or_else(|| shares.iter().fold(0, |sum: u32, share| sum.saturating_add(share.tasks)).max(1));
    if wanted == 0 || u64::from(wanted) > most {
        return Err(limit(format!("tasks: {wanted} are wanted, the job has room for 1 to {most}")));
    }
    let Some(nodes) = nodes else { return Ok(fill(&shares, wanted)) };
    if nodes == 0 || nodes as usize > shares.len() || nodes > wanted {
        let most = shares.len().min(wanted as usize);
        return Err(limit(format!("nodes: {nodes} are wanted, 1 to {most} are possible for {wanted} tasks")));
    }
    let (each, more) = (wanted / nodes, wanted % nodes);
    let dealt = shares.iter().take(nodes as usize).zip(0..);
    Ok(dealt.map(|(share, at)| NodeTasks { node: share.node, tasks: each + u32::from(at < more) }).collect())
}

/// First the places for tasks that the job asked for, then its other cores.
fn fill(shares: &[&NodeShare], wanted: u32) -> Vec<NodeTasks> {
    let mut left = wanted;
    let mut layout: Vec<NodeTasks> = shares.iter().map(|share| NodeTasks { node: share.node, tasks: 0 }).collect();
    let places = |share: &NodeShare| share.tasks;
    let cores = |share: &NodeShare| u32::try_from(share.cores.len()).unwrap_or(u32::MAX).saturating_sub(share.tasks);
    for room in [&places as &dyn Fn(&NodeShare) -> u32, &cores] {
        for (share, part) in shares.iter().zip(&mut layout) {
            let more = room(share).min(left);
            part.tasks += more;
            left -= more;
        }
    }
    layout.retain(|part| part.tasks > 0);
    layout
}

fn limit(message: String) -> Refusal {
    Refusal::new(RefusalCode::LimitReached, message)
}

pub(super) fn ended(access: &Access, part: PartId, step: StepId, exit: NodeExit) -> Result<Decision, Refusal> {
    if access.state.launched_step(part.run(), step).is_some() {
        return launch::tasks_ended(access, part, step, exit, Vec::new());
    }
    let Some((run, known, at)) = open_part(access, part, step)? else { return Ok(Decision::done(Vec::new())) };
    let node = known.parts[at].node;
    let mut events = vec![Event::StepNodeEnded { job: run.job, run: run.id, step, node, exit: exit.clone() }];
    if ends_with(known, at) {
        let status = status_that_counts(exits_with(known, at, &exit));
        events.push(Event::StepEnded { job: run.job, run: run.id, step, status });
    }
    Ok(Decision::done(events))
}

/// The part of a step, of those that have not ended, that the node of the actor speaks of. A repeated report speaks of none.
fn open_part<'a>(access: &Access<'a>, id: PartId, step: StepId) -> Result<Option<(&'a Run, &'a Step, usize)>, Refusal> {
    let node = access.require_node()?.id;
    let Some((run, part)) = access.state.part_named(node, id) else { return Ok(None) };
    let at = access.state.step_position(run, step, part);
    let open =
        at.zip(run.steps.get(&step)).filter(|(at, known)| known.parts.get(*at).is_some_and(|part| part.exit.is_none()));
    Ok(open.map(|(at, known)| (run, known, at)))
}

/// Whether all parts of a step but this one have ended.
fn ends_with(step: &Step, at: usize) -> bool {
    step.parts.iter().enumerate().all(|(other, part)| other == at || part.exit.is_some())
}

/// How the parts of a step ended, by rank, of which this one ends now.
fn exits_with<'a>(step: &'a Step, at: usize, exit: &'a NodeExit) -> impl Iterator<Item = &'a NodeExit> {
    let parts = step.parts.iter().enumerate();
    parts.filter_map(move |(other, part)| if other == at { Some(exit) } else { part.exit.as_ref() })
}

/// The first status by rank that is not 0; else none if a part has none, because its tasks never ran or their node was
/// lost; else 0.
pub(super) fn status_that_counts<'a>(exits: impl Iterator<Item = &'a NodeExit>) -> Option<ExitStatus> {
    let statuses: Vec<_> = exits.map(|exit| exit.status).collect();
    let failure = statuses.iter().flatten().find(|status| !status.is_success()).copied();
    failure.or_else(|| statuses.into_iter().collect::<Option<Vec<_>>>()?.first().copied())
}
