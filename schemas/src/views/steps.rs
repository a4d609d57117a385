//! Steps as the API shows them, and requests about them.

use crate::{
    event::NodeExit,
    ids::{JobId, RunId, Sequence, StepId},
    job::{ExitStatus, Usage},
    resources::IndexSet,
    steps::{GroupTerms, StepSpec, TaskStatus, TerminalSize},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A step, of a job that runs or of one that is over.
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
    /// When its last task was gone; `null` while it runs.
    pub ended: Option<Timestamp>,
    /// Its nodes, in their order.
    pub nodes: Vec<StepNodeDetail>,
    /// How many tasks it has.
    pub total_tasks: u32,
    /// How its tasks ended, as far as they have: those that ended alike together, in the order of the first of their ranks.
    pub statuses: Vec<TaskStatus>,
    /// The first status that is not 0, else 0; `null` while it runs, and if no task could be started.
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
    /// Which component of the job it serves.
    pub component: u32,
    /// How many tasks.
    pub tasks: u32,
    /// Their ranks. Empty in lists of the steps of all jobs.
    #[serde(default)]
    pub ranks: IndexSet,
    /// The cores that they may use.
    pub cores: IndexSet,
    /// How it ended there; `null` while it runs.
    pub exit: Option<NodeExit>,
}

/// Steps, in the order of their jobs and numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepsPage {
    /// The steps.
    pub steps: Vec<StepDetail>,
    /// The answer is as after this record.
    pub sequence: Sequence,
}

/// A step to launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StepLaunchRequest {
    /// All of it, but for the settings of its groups.
    #[serde(flatten)]
    pub spec: StepSpec,
    /// For each of its groups what it has in place of what the step says for all; left out or empty, nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<GroupTerms>,
}

impl From<StepSpec> for StepLaunchRequest {
    fn from(spec: StepSpec) -> Self {
        Self { spec, terms: Vec::new() }
    }
}

/// A signal for a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StepSignalRequest {
    /// Its number, 1 to 64.
    pub signal: u8,
    /// Only on the nodes of this component.
    #[serde(default)]
    pub component: Option<u32>,
}

/// The end of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StepEndRequest {
    /// Only on the nodes of this component.
    pub component: Option<u32>,
    /// Without grace.
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

/// How far input has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepInputAnswer {
    /// All nodes have the input before this offset; the rest has to be sent again.
    pub length: u64,
}

/// The end of a job that holds resources for its client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConcludeRequest {
    /// The exit status of the client.
    pub status: ExitStatus,
}

/// The client of a job lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeepRequest {
    /// The job is cancelled if its client is silent for this long, 10 to 86,400, and for as long again; `null` means
    /// that it does not have to report.
    pub seconds: Option<u32>,
}
