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
    /// Another part of the same run failed to start, or ended the whole run.
    PeerEnded,
    /// No node confirmed the launch in time.
    LaunchTimeout,
    /// Its last task has ended, or a failed task ends the job.
    TasksEnded,
    /// Somebody declared the job finished.
    Finished,
    /// Its walltime is almost over: the rest is reserved for tasks that release nodes (HPC-J-12).
    Walltime,
    /// Like `Cancelled`, without a grace period (HPC-C-06).
    CancelledAtOnce,
    /// Like `Finished`, without a grace period.
    FinishedAtOnce,
    /// The client that it held resources for has ended, with this status.
    Concluded(ExitStatus),
    /// A job of a table is repeated: it waits for the next of its times.
    Repeated,
}

/// Why a run gives up resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShrinkReason {
    /// It has no work for them (HPC-S-10).
    Idle,
    /// Other jobs get a share of them (HPC-S-08).
    Rebalanced,
    /// A job of higher priority claims them; they are given up when the tasks there have ended (HPC-S-12).
    Preempted,
    /// Like `Preempted`, but the tasks there are stopped (HPC-S-14).
    TasksPreempted,
    /// Like `Rebalanced`, but the tasks there are stopped (HPC-S-08, HPC-S-14).
    TasksRebalanced,
    /// Somebody asked for it: everything there ends, while the job continues on its other nodes.
    Asked,
}

impl ShrinkReason {
    /// Whether tasks are stopped instead of being allowed to finish.
    pub const fn stops_tasks(self) -> bool {
        matches!(self, Self::TasksPreempted | Self::TasksRebalanced)
    }

    /// Whether the reason is rebalancing.
    pub const fn is_rebalancing(self) -> bool {
        matches!(self, Self::Rebalanced | Self::TasksRebalanced)
    }
}

/// A waiting job, and why it waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitingJob {
    /// The job or array.
    pub job: JobId,
    /// Why.
    pub reason: WaitReason,
}
