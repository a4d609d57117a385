//! Jobs that are a list of tasks: the job holds resources between its least and its greatest size, and its tasks run on
//! them as room comes.

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

/// The tasks of a job, and how the job goes with them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TaskList {
    /// The unit that sizes count.
    pub unit: SizeUnit,
    /// The least that the job runs on.
    pub min: u32,
    /// The greatest that it grows to.
    pub max: u32,
    /// The tasks, in their order; 1 or more unless `until_cancelled`.
    pub tasks: Vec<TaskSpec>,
    /// The job keeps its resources when no task is left (HPC-J-20).
    pub until_cancelled: bool,
    /// The first failed task stops the job (HPC-J-21).
    pub fail_on_task_failure: bool,
    /// Tasks that wait for one that failed fail, instead of starting.
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
    /// The least that an instance of it needs, in the job's unit; at least 1.
    pub min: u32,
    /// The greatest that an instance of it can use.
    pub max: u32,
    /// An instance is stopped, and has failed, after this time.
    #[serde(default)]
    pub run_time_seconds: Option<u64>,
    /// The tasks that must have ended before, by their places in the list, from 0.
    #[serde(default)]
    pub after: Vec<u32>,
    /// Its launch; the program is [`crate::job::Program::Tasks`], run once for an instance.
    pub launch: Launch,
    /// Its own variables, which override those of the job.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Its working directory; `None` means that of the job.
    #[serde(default)]
    pub working_directory: Option<String>,
    /// Exit codes with which it has ended well, as ranges; empty means 0 alone.
    #[serde(default)]
    pub valid_exit_codes: Vec<(i32, i32)>,
    /// Whether it may run a second time after its resources were taken or lost.
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
        /// From one value to the next; at least 1.
        increment: i32,
        /// How many values; 1 to 1,000,000.
        steps: u32,
    },
    /// On each node before any other task there.
    NodePrep,
    /// On each node when the job leaves it.
    NodeRelease,
    /// On all resources, again and again.
    Service,
}

impl TaskSpec {
    /// How many instances run in all; 0 for tasks that run by node or for ever.
    pub const fn instances(&self) -> u32 {
        match self.kind {
            TaskKind::Basic => 1,
            TaskKind::Sweep { steps, .. } => steps,
            TaskKind::NodePrep | TaskKind::NodeRelease | TaskKind::Service => 0,
        }
    }

    /// Whether an instance with this exit code has ended well.
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
    /// The place of the task in the list, from 0.
    pub task: u32,
    /// Which of its instances, from 0: the step of a sweep; how often a service or a task of a node has run before.
    pub instance: u32,
}
