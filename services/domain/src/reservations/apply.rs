//! Reservations and closures.

use crate::{reservations::Reservation, state::State};
use muster_schemas::{
    JobId, NodeId, RunId, Timestamp,
    plan::{NodeClosure, ReservationSpec, ReservedNodes},
};
use std::{collections::BTreeSet, sync::Arc};

impl State {
    pub(crate) fn reservation_set(&mut self, spec: &Arc<ReservationSpec>, now: Timestamp) {
        let nodes: BTreeSet<NodeId> = match &spec.nodes {
            ReservedNodes::Named(names) => {
                names.iter().filter_map(|name| self.node_by_name(name).map(|node| node.id)).collect()
            }
            ReservedNodes::Count { .. } => BTreeSet::new(),
        };
        self.reservation_removed(&spec.name);
        let name = self.pools.text.share(spec.name.as_str());
        let is_counted = spec.ends_after_idle_seconds > 0;
        let runs = if is_counted { self.runs_in(&spec.name) } else { BTreeSet::new() };
        let idle_since = if is_counted { now } else { Timestamp::default() };
        let reservation = Reservation { spec: spec.clone(), nodes, begun: false, runs, idle_since };
        self.index.add_reservation(&name, &reservation);
        self.planning.reservations.insert(name, reservation);
    }

    /// The runs of jobs in a reservation.
    fn runs_in(&self, name: &str) -> BTreeSet<RunId> {
        let is_inside = |job: JobId| self.job(job).is_some_and(|job| job.reservations().any(|own| **own == *name));
        self.runs.values().filter(|run| is_inside(run.job)).map(|run| run.id).collect()
    }

    pub(crate) fn reservation_begun(&mut self, name: &str, now: Timestamp) {
        self.change_reservation(name, |reservation| {
            reservation.begun = true;
            if reservation.ends_when_idle() {
                reservation.idle_since = now;
            }
        });
    }

    /// A job has got a run, or its run is over: the reservations that it is in are idle or not.
    pub(crate) fn reservations_used(&mut self, job: JobId, run: RunId, is_over: bool, now: Timestamp) {
        let names: Vec<Arc<str>> =
            self.job(job).into_iter().flat_map(|job| job.reservations()).map(Arc::clone).collect();
        for name in names {
            if !self.reservation(&name).is_some_and(Reservation::ends_when_idle) {
                continue;
            }
            self.change_reservation(&name, |reservation| match is_over {
                false => drop(reservation.runs.insert(run)),
                true if reservation.runs.remove(&run) => reservation.idle_since = now,
                true => {}
            });
        }
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
