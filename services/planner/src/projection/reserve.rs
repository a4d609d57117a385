//! Nodes for advance reservations that ask for a number of nodes.

use super::{Placed, Projection};
use crate::model::{ComponentDemand, Demand};
use muster_domain::{nodes::Node, requests, reservations::Reservation};
use muster_schemas::{
    NodeId, Timestamp,
    plan::{ReservationSpec, ReservedNodes},
    resources::{Alternative, Count, Level, LevelCount, Memory, NodeFilter, Per, Request, Sharing},
};
use std::{collections::BTreeSet, sync::Arc};

impl Projection {
    /// Nodes for the reservations that have none yet, as far as there are enough.
    pub(super) fn unplaced_reservations(&self, now: Timestamp) -> Vec<Placed> {
        let mut placed: Vec<(&ReservationSpec, Placed)> = Vec::new();
        for reservation in self.state.reservations().filter(|reservation| reservation.is_unplaced()) {
            let spec = &*reservation.spec;
            let overlapping = placed.iter().filter(|(other, _)| other.start < spec.end && spec.start < other.end);
            let overlapping = overlapping.filter(|_| !spec.overlaps);
            let taken: BTreeSet<NodeId> = overlapping.flat_map(|(_, (_, nodes))| nodes.iter().copied()).collect();
            if let Some(nodes) = self.choose(spec, now, &taken) {
                placed.push((spec, (spec.name.clone(), nodes)));
            }
        }
        placed.into_iter().map(|(_, placed)| placed).collect()
    }

    /// The first nodes without runs and promises throughout the reservation; otherwise the first that no other
    /// reservation has, if that matters, although runs may then be in its way.
    fn choose(&self, spec: &ReservationSpec, now: Timestamp, taken: &BTreeSet<NodeId>) -> Option<Vec<NodeId>> {
        let ReservedNodes::Count { count, filter, queue } = &spec.nodes else { return None };
        let excluded = taken.iter().map(|node| self.state.node_name(*node).into_owned()).collect();
        let demand = whole_nodes(spec, now, *count, filter.clone(), queue.as_deref().unwrap_or_default(), excluded);
        let start = spec.start.max(now);
        if let Some(placement) = self.engine.search(now).at(&demand, start) {
            return Some(placement.shares().map(|share| share.node).collect());
        }
        let is_free = |node: &&Node| {
            let mut reservations = self.state.reservations_of(node.id);
            let is_apart = |other: &Reservation| other.spec.end <= spec.start || spec.end <= other.spec.start;
            !taken.contains(&node.id) && (spec.overlaps || reservations.all(is_apart))
        };
        let serves = |node: &&Node| {
            let queue = queue.as_deref().and_then(|queue| self.state.queue(queue));
            queue.is_none_or(|queue| queue.spec.nodes.is_empty() || queue.spec.nodes.contains(&node.spec.name))
                && filter.as_ref().is_none_or(|filter| requests::matches(&node.spec, filter))
        };
        let chosen: Vec<NodeId> =
            self.state.nodes().filter(is_free).filter(serves).map(|node| node.id).take(*count as usize).collect();
        (chosen.len() == *count as usize).then_some(chosen)
    }
}

/// This many empty nodes from the beginning of the reservation, or from now on, to its end.
fn whole_nodes(
    spec: &ReservationSpec,
    now: Timestamp,
    count: u32,
    filter: Option<NodeFilter>,
    queue: &str,
    excluded_nodes: Vec<String>,
) -> Demand {
    let request = Request {
        path: vec![LevelCount { level: Level::Node, count: Count::exactly(count) }],
        memory: Some(Memory { bytes: 0, per: Per::Node }),
        filter,
        excluded_nodes,
        sharing: Sharing::Exclusive,
        ..Request::default()
    };
    let micros = u64::try_from(spec.end.micros_since(spec.start.max(now))).unwrap_or(0);
    let alternative = Alternative {
        requests: vec![request],
        walltime_seconds: Some(micros.div_ceil(1_000_000)),
        ..Alternative::default()
    };
    let component = ComponentDemand {
        queue: queue.into(),
        reservation: None,
        deadline: None,
        alternatives: Arc::new([alternative]),
    };
    Demand { components: vec![component], sharing: None, fixed: None, guard_seconds: 0 }
}
