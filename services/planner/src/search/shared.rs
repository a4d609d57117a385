//! Components of a job on nodes that they share (SL-P-07).
//!
//! They share only if they do not fit otherwise at the moment. Cores, GPUs and memory that one has are unavailable to
//! the others, and exclusive nodes are not shared.

use super::{Search, Taken, fits_any_sharing};
use crate::{
    free::FreeNode,
    model::{ComponentDemand, Demand},
    place,
};
use muster_domain::requests;
use muster_schemas::{
    NodeId,
    cluster::ClusterSettings,
    resources::{NodeShare, Request, Sharing},
};
use std::{cmp::Reverse, collections::BTreeSet};

/// How the components of a job are spread over nodes.
#[derive(Clone, Copy)]
pub(crate) enum Spread<'d> {
    /// Each on separate nodes, and on none that was dealt out to another.
    Apart(&'d [BTreeSet<NodeId>]),
    /// Each on any node that has room for it in addition to those placed before.
    Shared,
}

impl Spread<'_> {
    /// The nodes that are kept for other components.
    pub fn of_others(self, number: usize) -> BTreeSet<NodeId> {
        match self {
            Self::Apart(dealt) => place::of_others(dealt, number),
            Self::Shared => BTreeSet::new(),
        }
    }

    /// Whether another component may be on the node of a share.
    pub fn lets_share(self, share: &NodeShare) -> bool {
        matches!(self, Self::Shared) && !share.exclusive
    }
}

/// What a component needs of each of its nodes, most significant first: exclusive use, cores, GPUs and memory.
type Need = (bool, u64, u64, u64);

impl Search<'_> {
    /// Whether components of a job may be on the same node, and at least two can use a part of one.
    pub fn may_share(&self, demand: &Demand) -> bool {
        let can_share = |component: &&ComponentDemand| component.alternatives.iter().any(fits_any_sharing);
        self.shares_nodes && demand.components.iter().filter(can_share).nth(1).is_some()
    }

    /// The numbers of the components in the order in which they are placed.
    pub fn order_in(&self, demand: &Demand, spread: Spread) -> Vec<usize> {
        match spread {
            Spread::Apart(_) => self.components_in_order(demand),
            Spread::Shared => self.components_by_need(demand),
        }
    }

    /// Those that fewest nodes can serve first; among equals those that need most of a node: small ones find room next
    /// to others.
    fn components_by_need(&self, demand: &Demand) -> Vec<usize> {
        let mut order: Vec<usize> = (0..demand.components.len()).collect();
        order.sort_by_cached_key(|number| {
            let component = &demand.components[*number];
            (self.nodes_of_kind(component), Reverse(self.need(component)))
        });
        order
    }

    /// By its first alternative.
    fn need(&self, component: &ComponentDemand) -> Need {
        let default_memory_per_core_bytes = self.default_memory_per_core_bytes;
        let settings = ClusterSettings { default_memory_per_core_bytes, ..ClusterSettings::default() };
        let of_request = |request: &Request| {
            let least = requests::minimum(request, &settings);
            let each = |amount: u64| amount.div_ceil(least.nodes.max(1));
            (request.sharing != Sharing::Shared, each(least.cores), each(least.gpus), each(least.memory_bytes))
        };
        let requests = component.alternatives.first().into_iter().flat_map(|first| &first.requests);
        requests.map(of_request).max().unwrap_or_default()
    }
}

impl Taken<'_> {
    /// The rest of a node.
    pub(super) fn left_of<'a>(&self, mut free: FreeNode<'a>) -> FreeNode<'a> {
        if !self.shares.is_empty() {
            self.shares.get(&free.node).into_iter().flatten().for_each(|share| free.take(share));
        }
        free
    }
}
