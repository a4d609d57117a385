//! Nodes for several components that start together, each with separate nodes (SL-P-08), and for several requests of
//! one component that have separate nodes (SL-C-12).
//!
//! First fit takes the first nodes that serve a component, and those may be the only ones that serve another. Here the
//! nodes are dealt out so that every component has enough, if there is any way: each of the least number of nodes that
//! a component asks for has room for an equal part of its tasks.

use super::{Demand, Scope, bounds, can_serve, with_named_nodes};
use crate::free::{Free, FreeNode};
use muster_schemas::{
    NodeId,
    resources::{Alternative, Level, LevelCount, Request, Sharing},
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The request of a component for each of its nodes, if it has its least number of nodes.
#[derive(Clone, Debug)]
pub struct EachNode<'r> {
    demand: Demand<'r>,
    request: &'r Request,
    exclusive: bool,
    nodes: usize,
    least_room: u32,
}

impl<'r> EachNode<'r> {
    /// The request of an alternative for each node; `None` if it does not ask for a number of nodes, or if it matters how
    /// these lie to each other.
    pub fn of(alternative: &'r Alternative, default_memory_per_core_bytes: Option<u64>) -> Option<Self> {
        let [request] = &alternative.requests[..] else { return None };
        if alternative.has_layout() {
            return None;
        }
        Self::of_request(request, default_memory_per_core_bytes, request.sharing != Sharing::Shared)
    }

    fn of_request(request: &'r Request, default_memory_per_core_bytes: Option<u64>, exclusive: bool) -> Option<Self> {
        let nodes = match &with_named_nodes(request)[..] {
            [] => 1,
            [LevelCount { level: Level::Node, count }] => bounds(*count, usize::MAX).0,
            _ => return None,
        };
        let demand = Demand::new(request, default_memory_per_core_bytes, exclusive);
        let least_room = request.tasks.unwrap_or(nodes).div_ceil(nodes).max(1);
        Some(Self { demand, request, exclusive, nodes: nodes as usize, least_room })
    }

    /// The nodes that can be one of its nodes.
    pub fn wanted<'n, 'a: 'n>(&self, nodes: impl Iterator<Item = &'n FreeNode<'a>>, scope: &Scope) -> Wanted {
        let serves = |node: &&FreeNode<'_>| {
            can_serve(node, scope, self.request, self.exclusive) && self.demand.max_tasks(node) >= self.least_room
        };
        Wanted { nodes: self.nodes, able: nodes.filter(serves).map(|node| node.node).collect() }
    }
}

/// Deals free nodes out to requests that each want separate nodes; `None` if there is no way, or one of them does not
/// ask for a number of nodes.
pub(super) fn deal_to_requests(free: &Free, scope: &Scope, requests: &[Request]) -> Option<Vec<BTreeSet<NodeId>>> {
    let exclusive = requests.iter().any(|request| request.sharing != Sharing::Shared);
    let wanted = |request| {
        let each = EachNode::of_request(request, scope.default_memory_per_core_bytes, exclusive)?;
        Some(each.wanted(free.nodes().iter(), scope))
    };
    deal(&requests.iter().map(wanted).collect::<Option<Vec<Wanted>>>()?)
}

/// A number of these nodes.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// How many.
    pub nodes: usize,
    /// Of these, ascending.
    pub able: Vec<NodeId>,
}

/// Deals nodes out so that each gets as many as it wants, and no node is given twice; `None` if there is no way.
pub fn deal(wanted: &[Wanted]) -> Option<Vec<BTreeSet<NodeId>>> {
    let mut owners: BTreeMap<NodeId, usize> = BTreeMap::new();
    for (number, one) in wanted.iter().enumerate() {
        if one.able.len() < one.nodes {
            return None;
        }
        for _ in 0..one.nodes {
            give_one_more(wanted, &mut owners, number)?;
        }
    }
    let mut dealt = vec![BTreeSet::new(); wanted.len()];
    for (node, owner) in owners {
        dealt[owner].insert(node);
    }
    Some(dealt)
}

/// Gives one more node: a free one, or one that its owner exchanges for another, and so on.
fn give_one_more(wanted: &[Wanted], owners: &mut BTreeMap<NodeId, usize>, to: usize) -> Option<()> {
    // For each owner, the node and the taker that it was reached from.
    let mut from: BTreeMap<usize, (NodeId, usize)> = BTreeMap::new();
    let mut ahead = VecDeque::from([to]);
    while let Some(taker) = ahead.pop_front() {
        if let Some(free) = wanted[taker].able.iter().find(|node| !owners.contains_key(node)) {
            let (mut node, mut owner) = (*free, taker);
            loop {
                owners.insert(node, owner);
                let Some((left, next)) = from.get(&owner).filter(|_| owner != to) else { return Some(()) };
                (node, owner) = (*left, *next);
            }
        }
        for node in &wanted[taker].able {
            let owner = owners[node];
            if owner != to && owner != taker && !from.contains_key(&owner) {
                from.insert(owner, (*node, taker));
                ahead.push_back(owner);
            }
        }
    }
    None
}

/// The nodes that must be left to the others: those dealt out to other components.
pub fn of_others(dealt: &[BTreeSet<NodeId>], number: usize) -> BTreeSet<NodeId> {
    let others = dealt.iter().enumerate().filter(|(other, _)| *other != number);
    others.flat_map(|(_, nodes)| nodes.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wanted(nodes: usize, able: &[u32]) -> Wanted {
        Wanted { nodes, able: able.iter().copied().map(NodeId).collect() }
    }

    /// Whether there is a way, by trying all.
    fn has_way(wanted: &[(usize, Vec<u32>)], given: u32) -> bool {
        let Some(((nodes, able), rest)) = wanted.split_first() else { return true };
        let mut subsets = (0_u32..1 << able.len()).filter(|subset| subset.count_ones() as usize == *nodes);
        subsets.any(|subset| {
            let taken = able.iter().enumerate().filter(|(at, _)| subset & (1 << at) != 0);
            let taken = taken.fold(0, |taken, (_, node)| taken | 1 << node);
            taken & given == 0 && has_way(rest, given | taken)
        })
    }

    #[test]
    fn a_node_goes_to_who_has_no_other() {
        let dealt = deal(&[wanted(1, &[1, 3]), wanted(1, &[1, 2]), wanted(1, &[2])]).unwrap();
        assert_eq!(dealt.iter().map(|nodes| nodes.first().unwrap().0).collect::<Vec<_>>(), [3, 1, 2]);
    }

    proptest! {
        #[test]
        fn a_way_is_found_exactly_if_there_is_one(
            components in prop::collection::vec((1_usize..4, prop::collection::btree_set(0_u32..7, 0..7)), 1..5)
        ) {
            let components: Vec<(usize, Vec<u32>)> =
                components.into_iter().map(|(nodes, able)| (nodes, able.into_iter().collect())).collect();
            let asked: Vec<Wanted> = components.iter().map(|(nodes, able)| wanted(*nodes, able)).collect();
            let dealt = deal(&asked);
            prop_assert_eq!(dealt.is_some(), has_way(&components, 0));
            let mut given = BTreeSet::new();
            for (one, nodes) in asked.iter().zip(dealt.iter().flatten()) {
                prop_assert_eq!(nodes.len(), one.nodes);
                prop_assert!(nodes.iter().all(|node| one.able.contains(node) && given.insert(*node)));
            }
        }
    }
}
