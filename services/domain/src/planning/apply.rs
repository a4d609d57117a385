//! Policy, reservations, closures, and the results of plans in addition to their starts.

use crate::state::{BackfillPasses, Reservation, State};
use muster_schemas::{
    JobId, NodeId,
    plan::{BackfillPass, NodeClosure, PlanRecord, PlannedSlot, PredictedStart, ReservationSpec, ReservedNodes},
    policy::Policy,
};
use std::{collections::BTreeSet, sync::Arc};

impl State {
    /// Something has become free that no plan has seen yet. Without a policy nothing was ever promised, and a state of
    /// that time is as it always was.
    pub(super) fn note_freed(&mut self) {
        if self.planning.policy.is_some() {
            self.planning.freed = self.sequence;
        }
    }

    /// A job waits no more, or for something else. Its promise is free for others.
    pub(super) fn void_plans(&mut self, id: JobId) {
        let mut was_promised = false;
        self.change_job(id, |job| was_promised = job.forget_plans());
        self.forget_planned_components(id);
        if was_promised {
            self.note_freed();
        }
    }

    /// The findings of a backfill pass about the components of a job are void.
    pub(super) fn forget_planned_components(&mut self, id: JobId) {
        if self.passes.jobs.contains_key(&id) {
            Arc::make_mut(&mut self.passes).jobs.remove(&id);
        }
    }

    /// The findings about the components of jobs are those of the last pass, and of no earlier one (SL-P-03).
    pub(super) fn backfill_passed(&mut self, pass: &BackfillPass) {
        let BackfillPass { number, at, jobs, .. } = pass;
        let jobs = jobs.iter().map(|planned| (planned.job, planned.components.clone())).collect();
        self.passes = Arc::new(BackfillPasses { number: *number, at: *at, jobs });
    }

    pub(super) fn policy_set(&mut self, policy: &Arc<Policy>) {
        if !self.passes.jobs.is_empty() {
            Arc::make_mut(&mut self.passes).jobs.clear();
        }
        self.planning.policy = Some(policy.clone());
        self.note_freed();
    }

    pub(super) fn reservation_set(&mut self, spec: &Arc<ReservationSpec>) {
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

    pub(super) fn reservation_placed(&mut self, name: &str, nodes: &[NodeId]) {
        self.change_reservation(name, |reservation| reservation.nodes = nodes.iter().copied().collect());
    }

    pub(super) fn reservation_removed(&mut self, name: &str) {
        if let Some((name, reservation)) = self.planning.reservations.remove_entry(name) {
            self.index.remove_reservation(&name, &reservation);
            self.note_freed();
        }
    }

    /// Changes a reservation, if there is one, and keeps the index in step.
    pub(super) fn change_reservation(&mut self, name: &str, change: impl FnOnce(&mut Reservation)) {
        if let Some((name, mut reservation)) = self.planning.reservations.remove_entry(name) {
            self.index.remove_reservation(&name, &reservation);
            change(&mut reservation);
            self.index.add_reservation(&name, &reservation);
            self.planning.reservations.insert(name, reservation);
        }
    }

    pub(super) fn node_closures_set(&mut self, id: NodeId, closures: &[NodeClosure]) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let before = node.closure_due();
        let is_opened = node.closures.iter().any(|closure| !closures.contains(closure));
        node.closures = closures.to_vec();
        self.index.move_closure(id, before, node.closure_due());
        if is_opened {
            self.note_freed();
        }
    }

    pub(super) fn planned(&mut self, plan: &PlanRecord) {
        self.jobs_waiting(&plan.reasons);
        for PlannedSlot { job, slot } in &plan.slots {
            self.change_job(*job, |job| job.slot = slot.clone().map(Box::new));
        }
        for PredictedStart { job, start } in &plan.predictions {
            self.change_job(*job, |job| job.predicted_start = *start);
        }
        if !plan.slots.is_empty() {
            self.planning.promised_after = plan.seen;
        }
    }
}
