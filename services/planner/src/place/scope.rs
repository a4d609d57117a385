//! Which nodes may serve a request, and the bounds of a count.

use crate::free::FreeNode;
use muster_domain::requests;
use muster_schemas::{
    ids::NodeId,
    resources::{Count, Level, LevelCount, Request},
};
use std::collections::BTreeSet;

/// Which nodes may serve a component, apart from what its requests say.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'s> {
    /// Only nodes with these names, if there are any: those of the queue.
    pub queue_nodes: &'s [String],
    /// Excludes these nodes: those that other components of the job have exclusively.
    pub taken_nodes: &'s BTreeSet<NodeId>,
    /// Memory for each core of a request that names none.
    pub default_memory_per_core_bytes: Option<u64>,
    /// All nodes of the cluster in their order, for alternatives whose nodes follow each other; others need none.
    pub order: &'s [NodeId],
}

/// The least and the most of a count, given how many there are. At least one, and no more than there are; if the least
/// exceeds that, the count does not fit.
pub(super) fn bounds(count: Count, there_are: usize) -> (u32, u32) {
    let there_are = u32::try_from(there_are).unwrap_or(u32::MAX);
    match count {
        Count::Range { min, max } => (min.max(1), max.max(1).min(there_are)),
        Count::All => (there_are.max(1), there_are),
        Count::Best | Count::BestHalf => (1, there_are),
    }
}

/// How many are taken of those that were found: all, unless half of the best is asked for, which can be none (OAR-R-10).
pub(super) fn of_found<N: std::ops::Div<Output = N> + From<u8>>(count: Count, found: N) -> N {
    match count {
        Count::BestHalf => found / N::from(2),
        _ => found,
    }
}

pub(super) fn can_serve(node: &FreeNode, scope: &Scope, request: &Request, exclusive: bool) -> bool {
    !node.exclusive
        && (node.idle || !exclusive)
        && (scope.queue_nodes.is_empty() || scope.queue_nodes.contains(&node.spec.name))
        && !scope.taken_nodes.contains(&node.node)
        && requests::node_serves(node.spec, request)
}

/// A request that names nodes and gives no number of them wants all of them that its tasks can fill.
pub(super) fn with_named_nodes(request: &Request) -> Vec<LevelCount> {
    let mut path = request.path.clone();
    if path.is_empty() && !request.nodes.is_empty() {
        let named = u32::try_from(request.nodes.len()).unwrap_or(u32::MAX);
        let nodes = request.tasks.map_or(named, |tasks| named.min(tasks.max(1)));
        path.push(LevelCount { level: Level::Node, count: Count::exactly(nodes) });
    }
    path
}
