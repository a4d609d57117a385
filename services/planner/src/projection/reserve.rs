//! Nodes for advance reservations that ask for a number of nodes.

use super::{Placed, Projection};
use crate::model::{ComponentDemand, Demand};
use muster_domain::{
    nodes::Node,
    requests,
    reservations::{Reservation, clash},
};
use muster_schemas::{
    NodeId, Timestamp,
    plan::ReservedNodes,
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
            let is_other = |one: &Reservation| one.spec.name != spec.name && clash(spec, &one.spec);
            let is_taken = |node: &&Node| self.state.reservations_of(node.id).any(is_other);
            let mut taken: BTreeSet<NodeId> = self.state.nodes().filter(is_taken).map(|node| node.id).collect();
            let clashing = placed.iter().filter(|(other, _)| clash(spec, &other.spec));
            taken.extend(clashing.flat_map(|(_, (_, nodes))| nodes));
            let nodes = match reservation.is_unplaced() {
                true => self.choose(reservation, now, &taken),
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
        taken.extend(&reservation.nodes);
        let is_idle = |node: &&Node| {
            self.state.takes_jobs(node)
                && node.runs.is_empty()
                && !taken.contains(&node.id)
                && self.serves(reservation, node)
        };
        let idle = self.state.nodes().filter(is_idle).take(replaced.len()).count();
        // All of them if that is possible; otherwise the greatest number that is.
        let (mut least, mut most) = (1, u32::try_from(idle).ok()?);
        let (mut count, mut found) = (most, None);
        while least <= most {
            match self.idle(reservation, count, now, &taken) {
                Some(nodes) => (least, found) = (count + 1, Some(nodes)),
                None => most = count - 1,
            }
            count = u32::midpoint(least, most);
        }
        let found = found?;
        let kept = reservation.nodes.difference(replaced).chain(replaced.iter().skip(found.len())).copied();
        Some(kept.chain(found).collect())
    }

    /// Whether a node is one of those that a reservation by count asks for.
    fn serves(&self, reservation: &Reservation, node: &Node) -> bool {
        let ReservedNodes::Count { filter, queue, .. } = &reservation.spec.nodes else { return false };
        let queue = queue.as_deref().and_then(|queue| self.state.queue(queue));
        queue.is_none_or(|queue| queue.spec.nodes.is_empty() || queue.spec.nodes.contains(&node.spec.name))
            && filter.as_ref().is_none_or(|filter| requests::matches(&node.spec, filter))
    }

    /// This many nodes for a reservation without runs and promises throughout it.
    fn idle(
        &self,
        reservation: &Reservation,
        count: u32,
        now: Timestamp,
        taken: &BTreeSet<NodeId>,
    ) -> Option<Vec<NodeId>> {
        let ReservedNodes::Count { filter, queue, .. } = &reservation.spec.nodes else { return None };
        let excluded = taken.iter().map(|node| self.state.node_name(*node).into_owned()).collect();
        let (start, end) = reservation.period(now);
        let start = start.max(now);
        let micros = u64::try_from(end.micros_since(start)).unwrap_or(0);
        let queue = queue.as_deref().unwrap_or_default();
        let demand = whole_nodes(micros.div_ceil(1_000_000), count, filter.clone(), queue, excluded);
        let placement = self.engine.search(now).at(&demand, start)?;
        Some(placement.shares().map(|share| share.node).collect())
    }

    /// The first nodes without runs and promises throughout the reservation; otherwise the first that no other
    /// reservation has, if that matters, although runs may then be in its way.
    fn choose(&self, reservation: &Reservation, now: Timestamp, taken: &BTreeSet<NodeId>) -> Option<Vec<NodeId>> {
        let ReservedNodes::Count { count, .. } = &reservation.spec.nodes else { return None };
        if let Some(nodes) = self.idle(reservation, *count, now, taken) {
            return Some(nodes);
        }
        let is_free = |node: &&Node| !taken.contains(&node.id) && self.serves(reservation, node);
        let chosen: Vec<NodeId> =
            self.state.nodes().filter(is_free).map(|node| node.id).take(*count as usize).collect();
        (chosen.len() == *count as usize).then_some(chosen)
    }
}

/// This many empty nodes for that time.
fn whole_nodes(
    seconds: u64,
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
    let alternative =
        Alternative { requests: vec![request], walltime_seconds: Some(seconds), ..Alternative::default() };
    let component = ComponentDemand {
        queue: queue.into(),
        reservation: None,
        deadline: None,
        alternatives: Arc::new([alternative]),
    };
    Demand { components: vec![component], sharing: None, fixed: None, guard_seconds: 0 }
}
