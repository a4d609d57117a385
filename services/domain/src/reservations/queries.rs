//! Queries about reservations.

use crate::{jobs::Job, reservations::Reservation, state::State};
use muster_schemas::{
    NodeId,
    cluster::NodeCondition,
    plan::{Replaced, ReservedNodes},
};
use std::collections::BTreeSet;

/// Whether a job may have nodes of a reservation that one of its components does not name.
pub(crate) fn is_attracted(job: &Job, reservation: &Reservation) -> bool {
    let mut unnamed = job.components.iter().filter(|component| component.reservation().is_none());
    unnamed.any(|component| reservation.attracts(&job.owner.user, component.account.as_deref()))
}

impl State {
    /// All advance reservations that are not over, by name.
    pub fn reservations(&self) -> impl ExactSizeIterator<Item = &Reservation> {
        self.planning.reservations.values()
    }

    /// An advance reservation that is not over.
    pub fn reservation(&self, name: &str) -> Option<&Reservation> {
        self.planning.reservations.get(name)
    }

    /// The nodes of a reservation by number that others are to take the place of.
    pub fn nodes_to_replace(&self, reservation: &Reservation) -> BTreeSet<NodeId> {
        let spec = &reservation.spec;
        if spec.replaces == Replaced::None || !matches!(spec.nodes, ReservedNodes::Count { .. }) {
            return BTreeSet::new();
        }
        let is_meant = |id: &NodeId| {
            self.node(*id).is_none_or(|node| {
                let is_lost = node.drained.is_some() || matches!(node.condition, NodeCondition::Lost(_));
                is_lost || (spec.replaces == Replaced::Used && !node.runs.is_empty())
            })
        };
        reservation.nodes.iter().copied().filter(is_meant).collect()
    }

    /// Whether others are to take the place of nodes of any reservation.
    pub fn replaces_nodes(&self) -> bool {
        self.reservations().any(|reservation| !self.nodes_to_replace(reservation).is_empty())
    }

    /// The reservations of a node, by name.
    pub fn reservations_of(&self, node: NodeId) -> impl Iterator<Item = &Reservation> {
        let names = self.index.reserved.get(&node).into_iter().flatten();
        names.filter_map(|name| self.reservation(name))
    }
}
