//! Shares of nodes.

use super::names::{Names, node_name};
use crate::resources::{IndexSet, Placement};
use serde::Serialize;
use utoipa::ToSchema;

/// A run's share of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct AllocatedNode {
    /// The node's name.
    pub node: String,
    /// The component that it serves, from 0.
    pub component: u32,
    /// The index of the component's chosen alternative, from 0.
    pub alternative: u32,
    /// Its cores.
    pub cores: IndexSet,
    /// Its GPUs.
    pub gpus: IndexSet,
    /// Its memory; 0 means that none is set aside.
    pub memory_bytes: u64,
    /// Number of tasks there.
    pub tasks: u32,
    /// Whether the node serves no other job meanwhile.
    pub exclusive: bool,
}

/// All shares of a placement.
pub(super) fn allocated(placement: &Placement, names: &dyn Names) -> Vec<AllocatedNode> {
    let mut nodes = Vec::new();
    for (component, placed) in (0..).zip(&placement.components) {
        nodes.extend(placed.shares.iter().map(|share| AllocatedNode {
            node: node_name(names, share.node).into_owned(),
            component,
            alternative: placed.alternative,
            cores: share.cores.clone(),
            gpus: share.gpus.clone(),
            memory_bytes: share.memory_bytes,
            tasks: share.tasks,
            exclusive: share.exclusive,
        }));
    }
    nodes
}
