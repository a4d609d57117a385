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
    /// Nodes for the reservations that have none yet, as far as there are enough, and for those some of whose nodes are to be
    /// replaced, as far as idle ones are there.
    pub(super) fn placed_reservations(&self, now: Timestamp) -> Vec<Placed> {
        let mut placed: Vec<(&Reservation, Placed)> = Vec::new();
        for reservation in self.state.reservations() {
            let replaced = self.state.nodes_to_replace(reservation);
            if !reservation.is_unplaced() && replaced.is_empty() {
                continue;
            }
            let spec = &*reservation.spec;
            let (start, end) = reservation.period(now);
            let overlapping = placed.iter().filter(|(other, _)| {
                let (other_start, other_end) = other.period(now);
                !spec.overlaps && other_start < end && start < other_end
            });
            let taken: BTreeSet<NodeId> = overlapping.flat_map(|(_, (_, nodes))| nodes.iter().copied()).collect();
            let nodes = match reservation.is_unplaced() {
                true => self.choose(spec, now, &taken),
                false => self.choose_others(reservation, &replaced, now, taken),
            };
            if let Some(nodes) = nodes {
                placed.push((reservation, (spec.name.clone(), nodes)));
            }
        }
        placed.into_iter().map(|(_, placed)| placed).collect()
    }

    /// The nodes of a reservation with idle ones in the place of as many of these as possible.
    fn choose_others(
        &self,
        reservation: &Reservation,
        replaced: &BTreeSet<NodeId>,
        now: Timestamp,
        mut taken: BTreeSet<NodeId>,
    ) -> Option<Vec<NodeId>> {
        let spec = &*reservation.spec;
        taken.extend(&reservation.nodes);
        let idle = |node: &&Node| self.state.takes_jobs(node) && node.runs.is_empty() && !taken.contains(&node.id);
        let most = self.state.nodes().filter(idle).count().min(replaced.len());
        let found = (1..=u32::try_from(most).ok()?).rev().find_map(|count| self.idle(spec, count, now, &taken))?;
        let kept = reservation.nodes.difference(replaced).chain(replaced.iter().skip(found.len())).copied();
        Some(kept.chain(found).collect())
    }

    /// This many nodes for a reservation without runs and promises throughout it.
    fn idle(
        &self,
        spec: &ReservationSpec,
        count: u32,
        now: Timestamp,
        taken: &BTreeSet<NodeId>,
    ) -> Option<Vec<NodeId>> {
        let ReservedNodes::Count { filter, queue, .. } = &spec.nodes else { return None };
        let excluded = taken.iter().map(|node| self.state.node_name(*node).into_owned()).collect();
        let demand = whole_nodes(spec, now, count, filter.clone(), queue.as_deref().unwrap_or_default(), excluded);
        let start = spec.start.max(now);
        let placement = self.engine.search(now).at(&demand, start)?;
        Some(placement.shares().map(|share| share.node).collect())
    }

    /// The first nodes without runs and promises throughout the reservation; otherwise the first that no other
    /// reservation has, if that matters, although runs may then be in its way.
    fn choose(&self, spec: &ReservationSpec, now: Timestamp, taken: &BTreeSet<NodeId>) -> Option<Vec<NodeId>> {
        let ReservedNodes::Count { count, filter, queue } = &spec.nodes else { return None };
        if let Some(nodes) = self.idle(spec, *count, now, taken) {
            return Some(nodes);
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
