//! Reservations and closures.

use crate::{
    jobs::Job,
    reservations::{Reservation, queries::is_attracted},
    runs::Run,
    state::State,
};
use muster_schemas::{
    JobId, NodeId, RunId, Timestamp,
    plan::{NodeClosure, ReservationSpec, ReservedNodes},
    resources::Placement,
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
        let jobs = if is_counted { self.jobs_naming(&spec.name) } else { BTreeSet::new() };
        let idle_since = if is_counted { now } else { Timestamp::default() };
        let runs = BTreeSet::new();
        let mut reservation = Reservation { spec: spec.clone(), nodes, begun: false, runs, idle_since, jobs };
        reservation.runs = self.attracted_runs(&reservation);
        self.index.add_reservation(&name, &reservation);
        self.planning.reservations.insert(name, reservation);
    }

    /// The unfinished jobs that name a reservation.
    fn jobs_naming(&self, name: &str) -> BTreeSet<JobId> {
        let names_it = |job: &&Job| !job.is_finished() && job.reservations().any(|own| **own == *name);
        self.jobs().filter(names_it).map(|job| job.id).collect()
    }

    /// The runs on its nodes of jobs that a reservation attracts, if they are counted.
    fn attracted_runs(&self, reservation: &Reservation) -> BTreeSet<RunId> {
        if !reservation.ends_when_idle() || !reservation.spec.attracts {
            return BTreeSet::new();
        }
        let is_inside = |run: &&Run| {
            run.nodes().any(|node| reservation.nodes.contains(&node))
                && self.job(run.job).is_some_and(|job| is_attracted(job, reservation))
        };
        self.runs().filter(is_inside).map(|run| run.id).collect()
    }

    pub(crate) fn reservation_begun(&mut self, name: &str, now: Timestamp) {
        self.change_reservation(name, |reservation| {
            reservation.begun = true;
            if reservation.ends_when_idle() {
                reservation.idle_since = now;
            }
        });
    }

    /// A job names other reservations than before, is new or has finished: they are idle or not.
    pub(crate) fn reservations_named(&mut self, job: JobId, before: &[Arc<str>], after: &[Arc<str>]) {
        let now = self.time;
        for name in before.iter().chain(after) {
            if !self.reservation(name).is_some_and(Reservation::ends_when_idle) {
                continue;
            }
            let is_in = after.contains(name);
            self.change_reservation(name, |reservation| match is_in {
                true => drop(reservation.jobs.insert(job)),
                false if reservation.jobs.remove(&job) => reservation.idle_since = now,
                false => {}
            });
        }
    }

    /// A job that names no reservation has got a run, or its run is over: those that attract it are idle or not.
    pub(crate) fn reservations_used(&mut self, job: JobId, run: RunId, placement: &Placement, is_over: bool) {
        if self.planning.reservations.is_empty() {
            return;
        }
        let now = self.time;
        let nodes: BTreeSet<NodeId> = placement.nodes().collect();
        let attracting = nodes.iter().flat_map(|node| self.reservations_of(*node));
        let counted = attracting.filter(|one| one.ends_when_idle() && one.spec.attracts);
        let names: BTreeSet<String> = match self.job(job) {
            Some(job) => {
                let concerned = counted.filter(|one| is_over || is_attracted(job, one));
                concerned.map(|one| one.spec.name.clone()).collect()
            }
            None => return,
        };
        for name in names {
            self.change_reservation(&name, |reservation| match is_over {
                false => drop(reservation.runs.insert(run)),
                true if reservation.runs.remove(&run) => reservation.idle_since = now,
                true => {}
            });
        }
    }

    pub(crate) fn reservation_placed(&mut self, name: &str, nodes: &[NodeId]) {
        self.change_reservation(name, |reservation| reservation.nodes = nodes.iter().copied().collect());
        let runs = self.reservation(name).map(|reservation| self.attracted_runs(reservation)).unwrap_or_default();
        if self.reservation(name).is_some_and(|reservation| reservation.runs != runs) {
            self.change_reservation(name, |reservation| reservation.runs = runs);
        }
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
