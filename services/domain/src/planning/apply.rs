//! The policy, and the effects of plans besides starts.

use crate::{planning::BackfillPasses, state::State};
use muster_schemas::{
    JobId, Timestamp,
    cycle::ProgramCycle,
    plan::{BackfillPass, PlanRecord, PlannedSlot, PredictedStart},
    policy::Policy,
};
use std::sync::Arc;

impl State {
    /// Notes that something became free that no plan has seen yet. Nothing is noted before the first policy, since
    /// there are no promises then, and states from before policies existed stay the same.
    pub(crate) fn note_freed(&mut self) {
        if self.planning.policy.is_some() {
            self.planning.freed = self.sequence;
        }
    }

    /// A job no longer waits, or waits for something else. Its promise is void.
    pub(crate) fn void_plans(&mut self, id: JobId) {
        let mut was_promised = false;
        self.change_job(id, |job| was_promised = job.forget_plans());
        self.forget_planned_components(id);
        if was_promised {
            self.note_freed();
        }
    }

    /// Drops what a backfill pass found about the components of a job.
    pub(crate) fn forget_planned_components(&mut self, id: JobId) {
        if self.passes.jobs.contains_key(&id) {
            Arc::make_mut(&mut self.passes).jobs.remove(&id);
        }
    }

    /// Replaces what earlier passes found about the components of jobs (SL-P-03).
    pub(crate) fn backfill_passed(&mut self, pass: &BackfillPass) {
        let BackfillPass { number, at, jobs, .. } = pass;
        let jobs = jobs.iter().map(|planned| (planned.job, planned.components.clone())).collect();
        self.passes = Arc::new(BackfillPasses { number: *number, at: *at, jobs });
    }

    pub(crate) fn program_cycled(&mut self, cycle: &Arc<ProgramCycle>) {
        self.program_cycle = Some(cycle.clone());
    }

    pub(crate) fn policy_set(&mut self, policy: &Arc<Policy>, now: Timestamp) {
        let rule = |policy: &Policy| policy.turns.as_ref().and_then(|turns| turns.usage);
        let old = self.planning.policy.as_deref().and_then(rule);
        self.share_use.rule_changed(old, rule(policy), now);
        if !self.passes.jobs.is_empty() {
            Arc::make_mut(&mut self.passes).jobs.clear();
        }
        let slices = self.use_share().map(|rule| rule.slice_seconds);
        self.settle_owner_use(policy, now);
        self.planning.policy = Some(policy.clone());
        self.window_rule_changed(slices);
        self.routes_changed(now);
        self.note_freed();
    }

    pub(crate) fn planned(&mut self, plan: &PlanRecord) {
        self.jobs_waiting(&plan.reasons);
        for PlannedSlot { job, slot } in &plan.slots {
            self.change_job(*job, |job| job.slot = slot.clone().map(Box::new));
        }
        for PredictedStart { job, start } in &plan.predictions {
            self.change_job(*job, |job| job.predicted_start = *start);
        }
        if let Some(promised) = &plan.promised {
            self.routes_promised(promised);
        }
        if let Some(lifted) = &plan.lifted {
            self.hours_lifted(lifted);
        }
        self.units_given(&plan.units);
        if !plan.slots.is_empty() {
            self.planning.promised_after = plan.seen;
        }
    }
}
