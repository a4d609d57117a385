//! Draining, taking down and resuming nodes; nodes that no longer report.

pub(crate) mod agents;
pub(crate) mod configure;

use crate::{
    copies,
    decide::{Access, Decision, not_found},
    nodes::{Node, state::gpu_count},
    runs, validate,
};
use muster_schemas::{
    NodeId, Timestamp,
    cluster::NodeCondition,
    command::{Refusal, RefusalCode},
    event::{Actor, Event, StopReason},
    node::{GpuFault, GpuReport, NodeLoad, PartUse},
};
use std::collections::BTreeSet;

/// The rest of a longer reason is left out.
const MAX_FAULT_CHARACTERS: usize = 200;

pub(crate) fn drain(access: &Access, names: &[String], reason: &str) -> Result<Decision, Refusal> {
    if let Actor::Executor(own) = access.actor {
        return drain_own(access, own, names, reason);
    }
    access.require_operator("drain nodes")?;
    validate::text("reason", reason)?;
    let is_drained = |node: &Node| {
        let is_down = access.state.taken_out(node.id).is_some_and(|taken| taken.is_down);
        !is_down && node.drained.as_deref() == Some(reason)
    };
    let changed = find(access, names)?.into_iter().filter(|node| !is_drained(node));
    Ok(Decision::done(changed.map(|node| taken_out(node, reason, false)).collect()))
}

/// A node says that it is not fit for jobs. A reason that an operator has given stays.
fn drain_own(access: &Access, own: &str, names: &[String], reason: &str) -> Result<Decision, Refusal> {
    let node = access.require_node()?;
    if names != [own] {
        return Err(Refusal::new(RefusalCode::PermissionDenied, format!("node `{own}` can only drain itself")));
    }
    validate::text("reason", reason)?;
    let is_new = node.drained.is_none();
    Ok(Decision::done(is_new.then(|| taken_out(node, reason, false)).into_iter().collect()))
}

/// Takes nodes out of service at once: their runs are stopped, with the same consequences as if the nodes were lost.
pub(crate) fn take_down(access: &Access, names: &[String], reason: &str) -> Result<Decision, Refusal> {
    access.require_operator("take nodes down")?;
    validate::text("reason", reason)?;
    let state = access.state;
    let mut stopped = BTreeSet::new();
    let mut events = Vec::new();
    for node in find(access, names)? {
        let is_down = state.taken_out(node.id).is_some_and(|taken| taken.is_down);
        if !is_down || node.drained.as_deref() != Some(reason) {
            events.push(taken_out(node, reason, true));
        }
        let running = node.runs.iter().filter_map(|run| state.run(*run)).filter(|run| run.stopping.is_none());
        // A run can have shares of several of the nodes.
        let runs = running.filter(|run| stopped.insert(run.id));
        events.extend(runs.map(|run| Event::RunStopping {
            job: run.job,
            run: run.id,
            reason: StopReason::NodeLost,
            grace_seconds: None,
        }));
    }
    Ok(Decision::done(events))
}

fn taken_out(node: &Node, reason: &str, is_down: bool) -> Event {
    Event::NodeTakenOut { node: node.id, reason: reason.to_owned(), is_down }
}

pub(crate) fn resume(access: &Access, names: &[String]) -> Result<Decision, Refusal> {
    if let Actor::Executor(own) = access.actor {
        return agents::come_back(access, own, names);
    }
    access.require_operator("resume nodes")?;
    let nodes = find(access, names)?;
    let changed = nodes.into_iter().filter(|node| node.drained.is_some());
    Ok(Decision::done(changed.map(|node| Event::NodeResumed { node: node.id }).collect()))
}

/// All named nodes, each once; refused if one does not exist.
pub(crate) fn find<'a>(access: &Access<'a>, names: &[String]) -> Result<Vec<&'a Node>, Refusal> {
    let mut nodes = Vec::with_capacity(names.len());
    for name in names {
        let node = access.state.node_by_name(name);
        nodes.push(node.ok_or_else(|| not_found(format!("node `{}` does not exist", validate::shown(name))))?);
    }
    nodes.sort_by_key(|node| node.id);
    nodes.dedup_by_key(|node| node.id);
    Ok(nodes)
}

/// What the executor of a node finds of its GPUs. A repeated report has no effect.
pub(crate) fn gpus_checked(access: &Access, report: &GpuReport) -> Result<Decision, Refusal> {
    let node = access.require_node()?;
    let (found, all) = (report.found, gpu_count(&node.spec));
    let fault = |gpu: u32| match report.faults.get(&gpu) {
        _ if gpu >= found => Some(format!("it is not there, the node has {found} of {all}")),
        why => why.map(|why| why.chars().take(MAX_FAULT_CHARACTERS).collect()),
    };
    let faults = (0..all).filter_map(|gpu| Some(GpuFault { gpu, why: fault(gpu)? }));
    let (node, faults, before) = (node.id, faults.collect::<Vec<_>>(), &node.gpu_faults);
    let is_news = faults != *before;
    Ok(Decision::done(is_news.then_some(Event::NodeGpusChecked { node, faults }).into_iter().collect()))
}

/// Reports of a node's load that come sooner are left out: they would fill the log.
const SHORTEST_LOAD_MICROS: i64 = 500_000;

/// The load of a node. Each report is recorded: how old a load is matters as well (PBS-L-05).
pub(crate) fn load_measured(
    access: &Access,
    load_millionths: u64,
    system_percent: Option<u32>,
    used: Vec<PartUse>,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let node = access.require_node()?.id;
    let system_percent = system_percent.map(|percent| percent.min(100));
    let is_soon = |known: NodeLoad| now.micros_since(known.at) < SHORTEST_LOAD_MICROS;
    if access.state.node_load(node).is_some_and(is_soon) {
        return Ok(Decision::done(Vec::new()));
    }
    let used = access.state.counted_use(node, used);
    Ok(Decision::done(vec![Event::NodeLoadMeasured { node, load_millionths, system_percent, used }]))
}

pub(crate) fn silent(access: &Access, id: NodeId, reason: &str, now: Timestamp) -> Result<Decision, Refusal> {
    access.require_ledger()?;
    let node = access.state.node(id).ok_or_else(|| not_found(format!("node {id} does not exist")))?;
    if node.condition != NodeCondition::Up {
        return Ok(Decision::done(Vec::new()));
    }
    if access.state.is_falling_asleep(id) {
        let mut events = vec![Event::NodeAsleep { node: id }];
        events.extend(copies::decide::node_lost(access.state, id, now));
        return Ok(Decision::done(events));
    }
    Ok(Decision::done(runs::decide::node_lost(access.state, node, reason, now)))
}
