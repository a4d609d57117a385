//! Nodes whose agent asks for its orders: they come into the cluster, and come back into service (OAR-K-04, OAR-K-10).

use crate::{
    decide::{Access, Decision},
    nodes,
};
use muster_schemas::{
    NodeId,
    agent::LEAVING,
    command::{Refusal, RefusalCode},
    event::{Actor, Event},
    resources::{NodeSpec, PropertyValue},
};
use std::sync::Arc;

/// An agent asks for work for the first time. If its node exists, this changes nothing.
pub(crate) fn join(access: &Access, mut node: NodeSpec) -> Result<Decision, Refusal> {
    let denied = |why: &str| Err(Refusal::new(RefusalCode::PermissionDenied, format!("node `{}`: {why}", node.name)));
    match access.actor {
        Actor::Executor(own) if *own == node.name => {}
        _ => return denied("only its own agent brings it into the cluster"),
    }
    match access.state.node_by_name(&node.name) {
        Some(known) if known.spec.is_pulled() => return Ok(Decision::done(Vec::new())),
        Some(_) => return denied("its orders are sent to it, and no agent asks for them"),
        None if !access.state.settings().agents_make_nodes => return denied("it is not part of the cluster"),
        None => {}
    }
    node.properties.insert(NodeSpec::PULL.to_owned(), PropertyValue::Flag(true));
    nodes::validate::node(&node)?;
    Ok(Decision::done(vec![Event::NodeAdded { node: NodeId(access.state.next_node), spec: Arc::new(node) }]))
}

/// The agent of a node asks for work again after it had been told to quit. What an operator has taken out of service stays
/// out of service.
pub(crate) fn come_back(access: &Access, own: &str, names: &[String]) -> Result<Decision, Refusal> {
    let node = access.require_node()?;
    if names != [own] {
        return Err(Refusal::new(RefusalCode::PermissionDenied, format!("node `{own}` can only resume itself")));
    }
    let has_left = node.spec.is_pulled() && node.drained.as_deref() == Some(LEAVING);
    Ok(Decision::done(has_left.then_some(Event::NodeResumed { node: node.id }).into_iter().collect()))
}
