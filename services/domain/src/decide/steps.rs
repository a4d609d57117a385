//! Steps that are started from inside a running job.

pub(super) mod launch;

use super::{Decision, access::Access, conflict, invalid, not_found};
use crate::{
    state::{Job, Run, Step},
    validate,
};
use muster_schemas::{
    JobId, NodeId, RunId, StepId,
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
    let tasks = lay_out(known, run, tasks, nodes)?;
    let step = run.next_step;
    let event = Event::StepStarted { job, run: run.id, step, launch: Arc::new(launch), tasks };
    Ok(Decision { events: vec![event], reply: Reply::Step { run: run.id, step } })
}

/// How many tasks of a step go to which node. Without a number of nodes they fill the job's task places in order; with
/// one they are dealt out evenly to the first so many nodes.
fn lay_out(job: &Job, run: &Run, tasks: Option<u32>, nodes: Option<u32>) -> Result<Vec<NodeTasks>, Refusal> {
    let is_ending = |node| run.part(node).is_some_and(|part| job.single_end(part.component).is_some());
    let shares: Vec<&NodeShare> = run.placement.shares().filter(|share| !is_ending(share.node)).collect();
    let most: u64 = shares.iter().map(|share| share.cores.len().max(u64::from(share.tasks))).sum();
    let wanted = tasks.unwrap_or_else(|| run.total_tasks().max(1));
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

pub(super) fn ended(access: &Access, run: RunId, step: StepId, exit: NodeExit) -> Result<Decision, Refusal> {
    let node = access.require_node()?.id;
    let Some((run, known)) = access.state.run(run).and_then(|run| Some((run, run.steps.get(&step)?))) else {
        return Ok(Decision::done(Vec::new()));
    };
    if access.state.launched_step(run.id, step).is_some() {
        return launch::tasks_ended(access, run.id, step, exit, Vec::new());
    }
    if !known.parts.iter().any(|part| part.node == node && part.exit.is_none()) {
        return Ok(Decision::done(Vec::new()));
    }
    let mut events = vec![Event::StepNodeEnded { run: run.id, step, node, exit: exit.clone() }];
    if known.parts.iter().all(|part| part.node == node || part.exit.is_some()) {
        let status = status_that_counts(exits_with(known, node, &exit));
        events.push(Event::StepEnded { job: run.job, run: run.id, step, status });
    }
    Ok(Decision::done(events))
}

/// How the parts of a step ended, by rank, of which the one on this node ends now.
fn exits_with<'a>(step: &'a Step, node: NodeId, exit: &'a NodeExit) -> impl Iterator<Item = &'a NodeExit> {
    step.parts.iter().filter_map(move |part| if part.node == node { Some(exit) } else { part.exit.as_ref() })
}

/// The first status by rank that is not 0, else 0.
pub(super) fn status_that_counts<'a>(exits: impl Iterator<Item = &'a NodeExit>) -> Option<ExitStatus> {
    let statuses: Vec<_> = exits.filter_map(|exit| exit.status).collect();
    statuses.iter().find(|status| !status.is_success()).or(statuses.first()).copied()
}
