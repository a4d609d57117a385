//! Queries about the policy and the allocation of resources to jobs.

use crate::{planning::BackfillPasses, state::State};
use muster_schemas::{Timestamp, cycle::ProgramCycle, policy::Policy, scheduling::SchedulingSettings};
use std::sync::Arc;

impl State {
    /// The policy that planners follow.
    pub fn policy(&self) -> &Arc<Policy> {
        self.planning.policy()
    }

    /// The backfill passes that start jobs with several components.
    pub fn backfill_passes(&self) -> &Arc<BackfillPasses> {
        &self.passes
    }

    /// The last cycle of a scheduling program, if there was one.
    pub fn program_cycle(&self) -> Option<&ProgramCycle> {
        self.program_cycle.as_deref()
    }

    /// Whether something became free that the last plan which changed a promise had not seen, so that promises may move to
    /// earlier times. Nothing counts before the first policy is set: no promises are made until then.
    pub fn capacity_freed(&self) -> bool {
        self.planning.freed > self.planning.promised_after
    }

    /// How resources are allocated to jobs.
    pub fn scheduling(&self) -> &Arc<SchedulingSettings> {
        &self.scheduling
    }

    /// When a run was last asked to give up resources so that other runs get a share of them (HPC-S-08).
    pub fn rebalanced(&self) -> Option<Timestamp> {
        self.rebalanced
    }
}
