//! Queries about reservations.

use crate::{
    jobs::Job,
    nodes::Node,
    reservations::{Reservation, clash},
    runs::{Run, walltime::walltime},
    state::State,
};
use muster_schemas::{
    NodeId, Timestamp,
    cluster::NodeCondition,
    plan::{Replaced, ReservationSpec, ReservedNodes},
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

    /// The nodes of a reservation by number that others are to take the place of. Before it begins, jobs that end by then do
    /// not use its nodes.
    pub fn nodes_to_replace(&self, reservation: &Reservation) -> BTreeSet<NodeId> {
        let spec = &reservation.spec;
        if spec.replaces == Replaced::None || !matches!(spec.nodes, ReservedNodes::Count { .. }) {
            return BTreeSet::new();
        }
        let start = reservation.period(self.time).0;
        let is_in_it = |run: &Run| reservation.begun || self.may_outlast(run, start);
        let is_used = |node: &Node| node.runs.iter().filter_map(|run| self.run(*run)).any(is_in_it);
        let is_meant = |id: &NodeId| {
            self.node(*id).is_none_or(|node| {
                let is_lost = node.drained.is_some() || matches!(node.condition, NodeCondition::Lost(_));
                is_lost || (spec.replaces == Replaced::Used && is_used(node))
            })
        };
        reservation.nodes.iter().copied().filter(is_meant).collect()
    }

    /// Whether a run can still be there at a time.
    fn may_outlast(&self, run: &Run, at: Timestamp) -> bool {
        let seconds =
            self.job(run.job).filter(|_| !run.is_suspended()).and_then(|job| walltime(job, &run.placement, 0));
        let end = |seconds: u64| {
            run.started.unwrap_or(run.allocated).plus_seconds(i64::try_from(seconds).unwrap_or(i64::MAX))
        };
        seconds.is_none_or(|seconds| end(seconds) > at)
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

    /// Another reservation of the node in the way of this one. One that was laid over others is in the way of new ones only.
    pub(crate) fn reservation_in_the_way(&self, spec: &ReservationSpec, node: NodeId) -> Option<&Reservation> {
        let is_known = self.reservation(&spec.name).is_some();
        let is_meant = |other: &&Reservation| other.spec.name != spec.name && !(is_known && other.spec.overlaps);
        self.reservations_of(node).filter(is_meant).find(|other| clash(spec, &other.spec))
    }
}
