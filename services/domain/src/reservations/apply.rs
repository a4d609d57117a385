//! Reservations and closures.

use crate::{reservations::Reservation, state::State};
use muster_schemas::{
    NodeId,
    plan::{NodeClosure, ReservationSpec, ReservedNodes},
};
use std::{collections::BTreeSet, sync::Arc};

impl State {
    pub(crate) fn reservation_set(&mut self, spec: &Arc<ReservationSpec>) {
        let nodes: BTreeSet<NodeId> = match &spec.nodes {
            ReservedNodes::Named(names) => {
                names.iter().filter_map(|name| self.node_by_name(name).map(|node| node.id)).collect()
            }
            ReservedNodes::Count { .. } => BTreeSet::new(),
        };
        self.reservation_removed(&spec.name);
        let name = self.pools.text.share(spec.name.as_str());
        let reservation = Reservation { spec: spec.clone(), nodes, begun: false };
        self.index.add_reservation(&name, &reservation);
        self.planning.reservations.insert(name, reservation);
    }

    pub(crate) fn reservation_placed(&mut self, name: &str, nodes: &[NodeId]) {
        self.change_reservation(name, |reservation| reservation.nodes = nodes.iter().copied().collect());
    }

    pub(crate) fn reservation_removed(&mut self, name: &str) {
        if let Some((name, reservation)) = self.planning.reservations.remove_entry(name) {
            self.index.remove_reservation(&name, &reservation);
            self.note_freed();
        }
    }

    /// Changes a reservation, if it exists, and updates the index.
    pub(crate) fn change_reservation(&mut self, name: &str, change: impl FnOnce(&mut Reservation)) {
        if let Some((name, mut reservation)) = self.planning.reservations.remove_entry(name) {
            self.index.remove_reservation(&name, &reservation);
            change(&mut reservation);
            self.index.add_reservation(&name, &reservation);
            self.planning.reservations.insert(name, reservation);
        }
    }

    pub(crate) fn node_closures_set(&mut self, id: NodeId, closures: &[NodeClosure]) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let before = node.closure_due();
        let is_opened = node.closures.iter().any(|closure| !closures.contains(closure));
        node.closures = closures.to_vec();
        self.index.move_closure(id, before, node.closure_due());
        if is_opened {
            self.note_freed();
        }
    }
}
