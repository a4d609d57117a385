//! How resources are given to jobs that can have more or fewer of them: modes, growth, preemption, look-ahead.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How resources are given to jobs, in addition to the policy, which orders the queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SchedulingSettings {
    /// How jobs get more than their minimum size. `None` leaves all jobs to the order and backfill of the policy: lists
    /// of tasks grow after everything that starts or is promised, shrink, and make way only for lists of tasks.
    pub mode: Option<SchedulingMode>,
    /// With a mode: number of jobs behind the first waiting one that backfill considers; 0 for none, negative for all;
    /// `None` means 1,000 (HPC-B-01).
    pub backfill_look_ahead: Option<i64>,
    /// Preemption in queued mode, and without a mode between lists of tasks; `None` means graceful (HPC-S-12).
    pub preemption: Option<Preemption>,
    /// Preemption in balanced mode; `None` means immediate (HPC-S-14).
    pub balanced_preemption: Option<Preemption>,
    /// How the rest is shared in balanced mode; `None` means medium (HPC-S-07).
    pub bias: Option<PriorityBias>,
    /// Interval at which balanced mode shares out again, in seconds, 1 to 3,600; `None` means 10 (HPC-S-08).
    pub rebalance_seconds: Option<u32>,
    /// How long tasks that release a node may take, in seconds, 1 to 3,600; `None` means 10 (HPC-J-12).
    pub release_timeout_seconds: Option<u32>,
    /// Whether running jobs grow; `None` means yes (HPC-S-09).
    pub growth: Option<bool>,
    /// Whether running jobs shrink; `None` means yes (HPC-S-10).
    pub shrink: Option<bool>,
    /// With a mode: whether running jobs grow by preemption; `None` means no (HPC-S-14).
    pub growth_by_preemption: Option<bool>,
    /// Whether immediate preemption stops only the tasks that it needs to; `None` means no (HPC-S-14).
    pub task_preemption: Option<bool>,
}

impl SchedulingSettings {
    /// The look-ahead in effect; `None` leaves backfill to the policy.
    pub fn look_ahead(&self) -> Option<i64> {
        self.mode.map(|_| self.backfill_look_ahead.unwrap_or(1000))
    }

    /// The kind of preemption in effect; without a mode, that of queued mode, from which only lists of tasks gain
    /// (HPC-S-01).
    pub fn preemption(&self) -> Preemption {
        match self.mode {
            None | Some(SchedulingMode::Queued) => self.preemption.unwrap_or(Preemption::Graceful),
            Some(SchedulingMode::Balanced) => self.balanced_preemption.unwrap_or(Preemption::Immediate),
        }
    }

    /// Whether running jobs make way for a waiting job. Without a mode, only lists of tasks do, and only for lists of
    /// tasks, so that jobs of other kinds neither gain nor lose (HPC-S-01).
    pub fn makes_way_for(&self, is_list: bool) -> bool {
        (is_list || self.mode.is_some()) && self.preemption() != Preemption::None
    }

    /// Whether running jobs grow.
    pub fn grows(&self) -> bool {
        self.growth.unwrap_or(true)
    }

    /// Whether running jobs grow by preemption. Without a mode, resources that others give up would go to the waiting
    /// jobs first.
    pub fn grows_by_preemption(&self) -> bool {
        self.mode.is_some() && self.grows() && self.growth_by_preemption.unwrap_or(false)
    }

    /// Whether running jobs shrink when they have no work for their resources.
    pub fn shrinks(&self) -> bool {
        self.shrink.unwrap_or(true)
    }
}

/// How jobs get more than their minimum size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SchedulingMode {
    /// In the order of the queue, each job gets the most that it can use (HPC-S-02).
    Queued,
    /// All jobs get their minimum first, and the rest is shared (HPC-S-06).
    Balanced,
}

/// How a job of higher priority gets resources of running jobs of lower priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preemption {
    /// It does not.
    None,
    /// Running tasks end by themselves, and no new ones start on the claimed resources.
    Graceful,
    /// The running jobs are stopped and put back into the queue.
    Immediate,
}

/// How unequally the rest is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PriorityBias {
    /// All equally.
    None,
    /// Each priority band gets twice as much as the one below.
    Medium,
    /// Each priority band gets ten times as much as the one below.
    High,
}
