//! Jobs that are lists of tasks: the job holds resources between its minimum and maximum size, and its tasks run on
//! them when there is room.

use crate::job::Launch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The unit of a job's size (HPC-J-13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SizeUnit {
    /// Cores.
    #[default]
    Core,
    /// Sockets.
    Socket,
    /// Nodes.
    Node,
}

/// The tasks of a job, and how the job depends on them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TaskList {
    /// The unit that sizes count.
    pub unit: SizeUnit,
    /// The minimum size of the job.
    pub min: u32,
    /// The maximum size of the job.
    pub max: u32,
    /// The tasks, in their order; 1 or more unless `until_cancelled`.
    pub tasks: Vec<TaskSpec>,
    /// Whether the job keeps its resources when no task is left (HPC-J-20).
    pub until_cancelled: bool,
    /// Whether the first failed task stops the job (HPC-J-21).
    pub fail_on_task_failure: bool,
    /// Whether tasks that wait for a failed one fail instead of starting.
    pub fail_dependents: bool,
    /// Whether a job of higher priority may take its resources (HPC-S-12).
    pub preemptable: bool,
}

/// A task of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskSpec {
    /// Its name, for people; may be empty.
    #[serde(default)]
    pub name: String,
    /// How often and when it runs.
    pub kind: TaskKind,
    /// The minimum size of an instance, in the job's unit; at least 1.
    pub min: u32,
    /// The maximum size of an instance.
    pub max: u32,
    /// Time limit of an instance, in seconds: it is then stopped and has failed.
    #[serde(default)]
    pub run_time_seconds: Option<u64>,
    /// The tasks that must end first, by index in the list, from 0.
    #[serde(default)]
    pub after: Vec<u32>,
    /// Its launch; the program is [`crate::job::Program::Tasks`], run once for each instance.
    pub launch: Launch,
    /// Its own variables, which override those of the job.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Its working directory; `None` means that of the job.
    #[serde(default)]
    pub working_directory: Option<String>,
    /// Exit codes that mean success, as ranges; empty means only 0.
    #[serde(default)]
    pub valid_exit_codes: Vec<(i32, i32)>,
    /// Whether it may run again after its resources were taken or lost.
    #[serde(default)]
    pub rerunnable: bool,
}

/// How often and when a task runs (HPC-J-22).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// Once.
    #[default]
    Basic,
    /// Once for each value.
    Sweep {
        /// The first value.
        start: i32,
        /// The increment from one value to the next; at least 1.
        increment: i32,
        /// Number of values; 1 to 1,000,000.
        steps: u32,
    },
    /// On each node before any other task there.
    NodePrep,
    /// On each node when the job leaves it.
    NodeRelease,
    /// On all resources, repeatedly.
    Service,
}

impl TaskSpec {
    /// Total number of instances; 0 for tasks that run per node or forever.
    pub const fn instances(&self) -> u32 {
        match self.kind {
            TaskKind::Basic => 1,
            TaskKind::Sweep { steps, .. } => steps,
            TaskKind::NodePrep | TaskKind::NodeRelease | TaskKind::Service => 0,
        }
    }

    /// Whether this exit code of an instance means success.
    pub fn is_success(&self, code: i32) -> bool {
        if self.valid_exit_codes.is_empty() {
            return code == 0;
        }
        self.valid_exit_codes.iter().any(|(first, last)| (*first..=*last).contains(&code))
    }
}

/// An instance of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub struct TaskInstance {
    /// The index of the task in the list, from 0.
    pub task: u32,
    /// The index of the instance, from 0: the step of a sweep, or how often a service or a node's task has run before.
    pub instance: u32,
}
