//! Why runs stop and shrink, and why jobs wait.

use crate::{
    ids::JobId,
    job::{ExitStatus, WaitReason},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a run is being stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Somebody cancelled the job.
    Cancelled,
    /// Somebody put the job back into the queue.
    Requeued,
    /// Another job needs the resources.
    Preempted,
    /// One of its nodes was lost.
    NodeLost,
    /// Another part of the same run failed to start, or ended it for all.
    PeerEnded,
    /// No node confirmed the launch in time.
    LaunchTimeout,
    /// The last of its tasks has ended, or the first that failed ends the job.
    TasksEnded,
    /// Somebody declared the job finished.
    Finished,
    /// Its walltime is almost over: only as much is left as tasks that release nodes may take (HPC-J-12).
    Walltime,
    /// As cancelled, without grace (HPC-C-06).
    CancelledAtOnce,
    /// As declared finished, without grace.
    FinishedAtOnce,
    /// The client that it held resources for is done, with this status.
    Concluded(ExitStatus),
}

/// Why a run gives up resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShrinkReason {
    /// It has no work for them (HPC-S-10).
    Idle,
    /// Others get a share of them (HPC-S-08).
    Rebalanced,
    /// A job of higher priority claims them, when its tasks there have ended (HPC-S-12).
    Preempted,
    /// As that, and its tasks there are stopped (HPC-S-14).
    TasksPreempted,
    /// Others get a share of them, and its tasks there are stopped (HPC-S-08, HPC-S-14).
    TasksRebalanced,
}

impl ShrinkReason {
    /// Whether tasks are stopped for it, rather than let end by themselves.
    pub const fn stops_tasks(self) -> bool {
        matches!(self, Self::TasksPreempted | Self::TasksRebalanced)
    }

    /// Whether it is that shares are levelled.
    pub const fn is_rebalancing(self) -> bool {
        matches!(self, Self::Rebalanced | Self::TasksRebalanced)
    }
}

/// A job that waits, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitingJob {
    /// The job or array.
    pub job: JobId,
    /// Why.
    pub reason: WaitReason,
}
