//! Queries about reservations.

use crate::{jobs::Job, reservations::Reservation, state::State};
use muster_schemas::NodeId;

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

    /// The reservations of a node, by name.
    pub fn reservations_of(&self, node: NodeId) -> impl Iterator<Item = &Reservation> {
        let names = self.index.reserved.get(&node).into_iter().flatten();
        names.filter_map(|name| self.reservation(name))
    }
}
