//! What can be asked of a state about the policy and how resources are given to jobs.

use crate::{planning::BackfillPasses, state::State};
use muster_schemas::{Timestamp, policy::Policy, scheduling::SchedulingSettings};
use std::sync::Arc;

impl State {
    /// The policy that planners follow.
    pub fn policy(&self) -> &Arc<Policy> {
        self.planning.policy()
    }

    /// The passes of backfill that start jobs with several components.
    pub fn backfill_passes(&self) -> &Arc<BackfillPasses> {
        &self.passes
    }

    /// Whether something has become free that the last plan which changed a promise could not see, so that promises may
    /// move to earlier times. Nothing is counted before the first policy is set: no promise is made until then.
    pub fn capacity_freed(&self) -> bool {
        self.planning.freed > self.planning.promised_after
    }

    /// How resources are given to jobs.
    pub fn scheduling(&self) -> &Arc<SchedulingSettings> {
        &self.scheduling
    }

    /// When a run was last asked to give up resources so that others get a share of them (HPC-S-08).
    pub fn rebalanced(&self) -> Option<Timestamp> {
        self.rebalanced
    }
}
