//! Steps as the API shows them, and requests about them.

use crate::{
    event::{EndCause, NodeExit},
    ids::{JobId, RunId, Sequence, StepId},
    job::{ExitStatus, Usage},
    resources::IndexSet,
    steps::{TaskStatus, TerminalSize},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A step of a running or finished job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepDetail {
    /// The job.
    pub job: JobId,
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepId,
    /// Its name, for people.
    pub name: String,
    /// When it was launched.
    pub launched: Timestamp,
    /// When its last task ended; `null` while it runs.
    pub ended: Option<Timestamp>,
    /// Its nodes, in order.
    pub nodes: Vec<StepNodeDetail>,
    /// Total number of tasks.
    pub total_tasks: u32,
    /// How its tasks ended, for those that have; tasks with the same status are grouped, in order of their first ranks.
    pub statuses: Vec<TaskStatus>,
    /// The first status that is not 0, else 0; `null` while it runs or if no task could be started.
    pub exit_status: Option<ExitStatus>,
    /// Its usage on all nodes where it has ended.
    pub usage: Usage,
    /// Whether it was asked to end.
    pub is_stopping: bool,
    /// Whether it and other steps may use the same cores.
    pub overlaps: bool,
    /// How long it may run, in seconds; `null` means as long as its job.
    pub walltime_seconds: Option<u64>,
    /// Values that its dialect wants back unchanged. Empty in lists of the steps of all jobs.
    pub attributes: BTreeMap<String, String>,
}

/// The part of a step on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepNodeDetail {
    /// The node's name.
    pub node: String,
    /// The component of the job that it serves, from 0.
    pub component: u32,
    /// Number of tasks.
    pub tasks: u32,
    /// Their ranks. Empty in lists of the steps of all jobs.
    #[serde(default)]
    pub ranks: IndexSet,
    /// The cores that they may use.
    pub cores: IndexSet,
    /// The cores of each task, in order of ranks, if the step binds them; a shorter list is used again from its
    /// beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bound: Vec<IndexSet>,
    /// The GPUs that no other step may use meanwhile; `null` means all of the job's there.
    #[serde(default)]
    pub gpus: Option<IndexSet>,
    /// How it ended there; `null` while it runs.
    pub exit: Option<NodeExit>,
}

impl StepDetail {
    /// Why it did not end by itself, node by node, for people.
    pub fn why(&self) -> Option<String> {
        let causes: Vec<String> = self.nodes.iter().filter_map(|node| cause_text(node.exit.as_ref()?)).collect();
        (!causes.is_empty()).then(|| causes.join("; "))
    }

    /// The nodes where tasks could not be started, and why.
    pub fn not_started(&self) -> impl Iterator<Item = (&StepNodeDetail, &str)> {
        self.nodes.iter().filter_map(|node| match &node.exit.as_ref()?.cause {
            EndCause::LaunchFailed(why) => Some((node, why.as_str())),
            _ => None,
        })
    }

    /// The part of a parallel program that is the reason for its end, and why (SL-W-06).
    pub fn aborted(&self) -> Option<(&StepNodeDetail, &str)> {
        let aborted = self.nodes.iter().filter_map(|node| match &node.exit.as_ref()?.cause {
            EndCause::Aborted(why) => Some((node, why.as_str())),
            _ => None,
        });
        // A node whose tasks wait may end before the one with the task that is the reason.
        aborted.min_by_key(|(_, why)| !why.starts_with("task "))
    }
}

/// Why a part did not end by itself.
fn cause_text(exit: &NodeExit) -> Option<String> {
    match &exit.cause {
        EndCause::Itself => None,
        EndCause::Walltime => Some("its walltime was over".to_owned()),
        EndCause::Killed => Some("it was killed".to_owned()),
        EndCause::OutOfMemory => Some("it used too much memory".to_owned()),
        EndCause::LaunchFailed(why) => Some(format!("it could not be started: {why}")),
        EndCause::Lost(why) => Some(format!("it was lost: {why}")),
        EndCause::Aborted(why) => Some(format!("it was aborted: {why}")),
    }
}

/// Steps, in the order of their jobs and numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepsPage {
    /// The steps.
    pub steps: Vec<StepDetail>,
    /// The answer shows the state after this record.
    pub sequence: Sequence,
}

/// A signal for a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StepSignalRequest {
    /// The signal's number, 1 to 64.
    pub signal: u8,
    /// Only on the nodes of this component, if one is given.
    #[serde(default)]
    pub component: Option<u32>,
}

/// Another time limit for a running step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StepWalltimeRequest {
    /// How long it may run from its start, in seconds; without it as long as its job.
    pub walltime_seconds: Option<u64>,
}

/// The end of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StepEndRequest {
    /// Only on the nodes of this component, if one is given.
    pub component: Option<u32>,
    /// Whether to skip the grace period.
    pub is_forced: bool,
}

/// The size of the client's terminal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StepTerminalRequest {
    /// The run.
    pub run: RunId,
    /// The size.
    pub size: TerminalSize,
}

/// How much input has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepInputAnswer {
    /// All nodes have the input before this offset; the rest must be sent again.
    pub length: u64,
}

/// The end of a job that holds resources for its client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConcludeRequest {
    /// The exit status of the client.
    pub status: ExitStatus,
}

/// The client of a job is alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeepRequest {
    /// The job is cancelled if its client is silent for twice this time, in seconds, 10 to 86,400; `null` means that
    /// the client does not have to report.
    pub seconds: Option<u32>,
}
