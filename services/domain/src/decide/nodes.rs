//! Drain and resume nodes; a node that is not heard of any more.

use super::{Decision, access::Access, not_found, reports};
use crate::{state::Node, validate};
use muster_schemas::{NodeId, Timestamp, cluster::NodeCondition, command::Refusal, event::Event};

pub(super) fn drain(access: &Access, names: &[String], reason: &str) -> Result<Decision, Refusal> {
    access.require_operator("drain nodes")?;
    validate::text("reason", reason)?;
    let nodes = find(access, names)?;
    let changed = nodes.into_iter().filter(|node| node.drained.as_deref() != Some(reason));
    Ok(Decision::done(changed.map(|node| Event::NodeDrained { node: node.id, reason: reason.to_owned() }).collect()))
}

pub(super) fn resume(access: &Access, names: &[String]) -> Result<Decision, Refusal> {
    access.require_operator("resume nodes")?;
    let nodes = find(access, names)?;
    let changed = nodes.into_iter().filter(|node| node.drained.is_some());
    Ok(Decision::done(changed.map(|node| Event::NodeResumed { node: node.id }).collect()))
}

/// All of the nodes named, each once, or none.
pub(super) fn find<'a>(access: &Access<'a>, names: &[String]) -> Result<Vec<&'a Node>, Refusal> {
    let mut nodes = Vec::with_capacity(names.len());
    for name in names {
        let node = access.state.node_by_name(name);
        nodes.push(node.ok_or_else(|| not_found(format!("node `{}` does not exist", validate::shown(name))))?);
    }
    nodes.sort_by_key(|node| node.id);
    nodes.dedup_by_key(|node| node.id);
    Ok(nodes)
}

pub(super) fn silent(access: &Access, id: NodeId, reason: &str, now: Timestamp) -> Result<Decision, Refusal> {
    access.require_ledger()?;
    let node = access.state.node(id).ok_or_else(|| not_found(format!("node {id} does not exist")))?;
    if node.condition != NodeCondition::Up {
        return Ok(Decision::done(Vec::new()));
    }
    Ok(Decision::done(reports::node_lost(access.state, node, reason, now)))
}
