//! The policy, and the results of plans in addition to their starts.

use crate::{planning::BackfillPasses, state::State};
use muster_schemas::{
    JobId,
    plan::{BackfillPass, PlanRecord, PlannedSlot, PredictedStart},
    policy::Policy,
};
use std::sync::Arc;

impl State {
    /// Something has become free that no plan has seen yet. Without a policy nothing was ever promised, and a state of
    /// that time is as it always was.
    pub(crate) fn note_freed(&mut self) {
        if self.planning.policy.is_some() {
            self.planning.freed = self.sequence;
        }
    }

    /// A job waits no more, or for something else. Its promise is free for others.
    pub(crate) fn void_plans(&mut self, id: JobId) {
        let mut was_promised = false;
        self.change_job(id, |job| was_promised = job.forget_plans());
        self.forget_planned_components(id);
        if was_promised {
            self.note_freed();
        }
    }

    /// The findings of a backfill pass about the components of a job are void.
    pub(crate) fn forget_planned_components(&mut self, id: JobId) {
        if self.passes.jobs.contains_key(&id) {
            Arc::make_mut(&mut self.passes).jobs.remove(&id);
        }
    }

    /// The findings about the components of jobs are those of the last pass, and of no earlier one (SL-P-03).
    pub(crate) fn backfill_passed(&mut self, pass: &BackfillPass) {
        let BackfillPass { number, at, jobs, .. } = pass;
        let jobs = jobs.iter().map(|planned| (planned.job, planned.components.clone())).collect();
        self.passes = Arc::new(BackfillPasses { number: *number, at: *at, jobs });
    }

    pub(crate) fn policy_set(&mut self, policy: &Arc<Policy>) {
        if !self.passes.jobs.is_empty() {
            Arc::make_mut(&mut self.passes).jobs.clear();
        }
        self.planning.policy = Some(policy.clone());
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
        if !plan.slots.is_empty() {
            self.planning.promised_after = plan.seen;
        }
    }
}
