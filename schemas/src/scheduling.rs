//! How resources are given to jobs that can have more or fewer of them: modes, growth, preemption, look-ahead.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How resources are given to jobs. Beside the policy, which orders the queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SchedulingSettings {
    /// How jobs get more than their least size. `None` leaves all jobs to the policy, as it orders and backfills: lists
    /// of tasks grow after everything that starts or is promised, shrink, and make way for lists of tasks alone.
    pub mode: Option<SchedulingMode>,
    /// With a mode: how many jobs behind the first waiting one are looked at for backfill; 0 for none, negative for
    /// all; `None` means 1,000 (HPC-B-01).
    pub backfill_look_ahead: Option<i64>,
    /// Preemption in queued mode, and without a mode between lists of tasks; `None` means graceful (HPC-S-12).
    pub preemption: Option<Preemption>,
    /// Preemption in balanced mode; `None` means immediate (HPC-S-14).
    pub balanced_preemption: Option<Preemption>,
    /// How what is left is shared in balanced mode; `None` means medium (HPC-S-07).
    pub bias: Option<PriorityBias>,
    /// How often balanced mode shares out again, 1 to 3,600; `None` means 10 (HPC-S-08).
    pub rebalance_seconds: Option<u32>,
    /// How long tasks that release a node may take, 1 to 3,600; `None` means 10 (HPC-J-12).
    pub release_timeout_seconds: Option<u32>,
    /// Whether running jobs grow; `None` means yes (HPC-S-09).
    pub growth: Option<bool>,
    /// Whether running jobs shrink; `None` means yes (HPC-S-10).
    pub shrink: Option<bool>,
    /// With a mode: whether running jobs grow by preemption; `None` means no (HPC-S-14).
    pub growth_by_preemption: Option<bool>,
    /// Whether immediate preemption stops only as many tasks as needed; `None` means no (HPC-S-14).
    pub task_preemption: Option<bool>,
}

impl SchedulingSettings {
    /// The look-ahead in effect; `None` leaves backfill to the policy.
    pub fn look_ahead(&self) -> Option<i64> {
        self.mode.map(|_| self.backfill_look_ahead.unwrap_or(1000))
    }

    /// The kind of preemption in effect; without a mode that of queued mode, by which lists of tasks alone gain
    /// (HPC-S-01).
    pub fn preemption(&self) -> Preemption {
        match self.mode {
            None | Some(SchedulingMode::Queued) => self.preemption.unwrap_or(Preemption::Graceful),
            Some(SchedulingMode::Balanced) => self.balanced_preemption.unwrap_or(Preemption::Immediate),
        }
    }

    /// Whether running jobs make way for a waiting job: without a mode only if that is a list of tasks, as they are, so
    /// that jobs of other kinds neither gain nor lose (HPC-S-01).
    pub fn makes_way_for(&self, is_list: bool) -> bool {
        (is_list || self.mode.is_some()) && self.preemption() != Preemption::None
    }

    /// Whether running jobs grow.
    pub fn grows(&self) -> bool {
        self.growth.unwrap_or(true)
    }

    /// Whether running jobs grow by preemption. Without a mode what others give up would first be for the waiting jobs.
    pub fn grows_by_preemption(&self) -> bool {
        self.mode.is_some() && self.grows() && self.growth_by_preemption.unwrap_or(false)
    }

    /// Whether running jobs shrink when they have no work for what they hold.
    pub fn shrinks(&self) -> bool {
        self.shrink.unwrap_or(true)
    }
}

/// How jobs get more than their least size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SchedulingMode {
    /// In the order of the queue, each as much as it can use (HPC-S-02).
    Queued,
    /// All at their least first, what is left is shared (HPC-S-06).
    Balanced,
}

/// How a job of higher priority gets what running jobs of lower priority hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preemption {
    /// It does not.
    None,
    /// Running tasks end by themselves, and no new ones start on what is claimed.
    Graceful,
    /// The running jobs are stopped and put back into the queue.
    Immediate,
}

/// How unequally what is left is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PriorityBias {
    /// All alike.
    None,
    /// Each band of priority twice as much as the one below.
    Medium,
    /// Each band of priority ten times as much as the one below.
    High,
}
