//! Steps: programs that are started inside a running job, as tasks on any of its nodes, with their own streams.

use crate::{ids::NodeId, job::ExitStatus, resources::IndexSet};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A step to launch inside a running job. Its tasks are numbered from 0 over all its groups: their ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StepSpec {
    /// Its name, for people; at most 1,024 bytes.
    pub name: String,
    /// Where its tasks start; `None` means the working directory of the job.
    pub working_directory: Option<String>,
    /// The environment of its tasks, before muster's own variables are added; `None` means that of the job.
    pub environment: Option<BTreeMap<String, String>>,
    /// File mode creation mask; `None` means that of the job.
    pub umask: Option<u32>,
    /// Parts of it, each with its own command and nodes. No node is twice in those of a component.
    pub groups: Vec<StepGroup>,
    /// Where the standard streams of its tasks come from and go to.
    pub streams: StepStreams,
    /// Variables that differ from task to task, by name. They override the others.
    pub variables: BTreeMap<String, TaskVariable>,
    /// It may use cores that other steps use, and keeps none from them.
    pub overlaps: bool,
    /// How long it may run, in seconds; `None` means as long as its job.
    pub walltime_seconds: Option<u64>,
    /// From SIGTERM to SIGKILL; `None` means what the cluster's settings say.
    pub kill_grace_seconds: Option<u32>,
    /// The first task that does not exit with 0 ends all others.
    pub ends_on_failure: bool,
    /// Values that a dialect wants back unchanged, by `dialect.name`.
    pub attributes: BTreeMap<String, String>,
    /// The dialect whose command launched it; `None` means that of the job.
    pub dialect: Option<String>,
}

/// A part of a step on nodes of one component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StepGroup {
    /// The component of the job whose nodes it uses, from 0.
    pub component: u32,
    /// The nodes, in the order in which tasks see them.
    pub places: Vec<StepPlace>,
    /// Cores for each task; 0 means 1.
    pub cpus_per_task: u32,
    /// Memory on each node that no other step has meanwhile; `None` asks for none.
    pub memory_bytes: Option<u64>,
    /// The command of each of its ranks.
    pub programs: Vec<StepProgram>,
    /// Its own variables, over those of the step.
    pub environment: BTreeMap<String, String>,
}

/// Settings of one group that override those of the step. They are in the log beside the step, whose shape in old
/// logs cannot grow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GroupTerms {
    /// Where its tasks start; `None` means as [`StepSpec::working_directory`] says.
    pub working_directory: Option<String>,
    /// Where the standard input of its tasks comes from; `None` means as [`StepStreams::stdin`] says.
    pub stdin: Option<StepInput>,
}

/// The tasks of a step on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StepPlace {
    /// The node's name.
    pub node: String,
    /// The ranks of the tasks there, not necessarily in a row.
    pub ranks: IndexSet,
    /// How many cores the step takes there; `None` means `cpus_per_task` for each task.
    #[serde(default)]
    pub cores: Option<u32>,
}

/// The command of some tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StepProgram {
    /// The ranks that run it.
    pub ranks: IndexSet,
    /// The command and its arguments. One without a slash is searched for in `PATH`.
    pub argv: Vec<String>,
}

/// Where the standard streams of tasks come from and go to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StepStreams {
    /// Standard input.
    pub stdin: StepInput,
    /// Standard output.
    pub stdout: StepOutput,
    /// Standard error; `None` means the same as standard output.
    pub stderr: Option<StepOutput>,
    /// Keep what output files have and write behind it.
    pub append_output: bool,
    /// The task of rank 0 gets a terminal of this size, whose bytes come from and go to the client, instead of its streams.
    pub terminal: Option<TerminalSize>,
}

/// Where standard input comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepInput {
    /// Nothing comes.
    #[default]
    Nothing,
    /// A file, by a pattern as in [`crate::job::Launch::stdin`].
    File(String),
    /// The client's input, for every task.
    AllTasks,
    /// The client's input, for the task of this rank; others get none.
    Task(u32),
}

/// Where output goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepOutput {
    /// To the client.
    #[default]
    Client,
    /// Into a file, by a pattern as in [`crate::job::Launch::stdout`] with `%s` the step and `%n` the node's place in it.
    File(String),
    /// Nowhere.
    Discarded,
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// The value of a variable of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskVariable {
    /// Its rank.
    Rank,
    /// Which of the tasks on its node it is, from 0.
    LocalRank,
    /// Which of the step's nodes it is on, from 0.
    NodeIndex,
    /// The name of its node.
    NodeName,
    /// The number of its process.
    ProcessId,
    /// How many tasks of the step are on its node.
    TasksOnNode,
    /// The ranks of those, between commas.
    RanksOnNode,
    /// How many cores the step has on its node.
    CoresOnNode,
    /// The numbers of those cores, as ranges.
    Cores,
    /// How many steps of the run were launched before its own: a number of the step that counts from 0.
    StepsBefore,
}

/// A step's share of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepShare {
    /// The node.
    pub node: NodeId,
    /// Which component of the job it serves.
    pub component: u32,
    /// How many tasks run there.
    pub tasks: u32,
    /// The cores that they may use.
    pub cores: IndexSet,
    /// Memory that no other step has meanwhile.
    pub memory_bytes: u64,
}

/// Tasks that ended alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskStatus {
    /// Their ranks.
    pub ranks: IndexSet,
    /// How they ended.
    pub status: ExitStatus,
}

/// A node's knowledge of its part of a step, in addition to the common part of every launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepTasks {
    /// The ranks of the tasks there.
    pub ranks: IndexSet,
    /// The command of each.
    pub programs: Vec<StepProgram>,
    /// See [`StepSpec::variables`].
    pub variables: BTreeMap<String, TaskVariable>,
    /// See [`StepSpec::streams`].
    pub streams: StepStreams,
    /// See [`StepSpec::ends_on_failure`].
    pub ends_on_failure: bool,
}

impl StepSpec {
    /// All its places, in the order of nodes, each with its group.
    pub fn places(&self) -> impl Iterator<Item = (&StepGroup, &StepPlace)> {
        self.groups.iter().flat_map(|group| group.places.iter().map(move |place| (group, place)))
    }

    /// Where the tasks of a group read from; `terms` are those of all groups, or none.
    pub fn stdin_of<'a>(&'a self, terms: &'a [GroupTerms], group: usize) -> &'a StepInput {
        terms.get(group).and_then(|terms| terms.stdin.as_ref()).unwrap_or(&self.streams.stdin)
    }

    /// Where the tasks of a group start, if it is not where their job does.
    pub fn working_directory_of<'a>(&'a self, terms: &'a [GroupTerms], group: usize) -> Option<&'a String> {
        terms.get(group).and_then(|terms| terms.working_directory.as_ref()).or(self.working_directory.as_ref())
    }

    /// The group of each of its places, in their order.
    pub fn groups_of_places(&self) -> impl Iterator<Item = usize> {
        self.groups.iter().enumerate().flat_map(|(at, group)| group.places.iter().map(move |_| at))
    }

    /// How many tasks it has.
    pub fn total_tasks(&self) -> u32 {
        let tasks = self.places().map(|(_, place)| place.ranks.len()).sum::<u64>();
        u32::try_from(tasks).unwrap_or(u32::MAX)
    }
}

impl StepGroup {
    /// How many cores it takes at a place.
    pub fn cores_at(&self, place: &StepPlace) -> u32 {
        let by_tasks = place.ranks.len().saturating_mul(u64::from(self.cpus_per_task.max(1)));
        place.cores.unwrap_or_else(|| u32::try_from(by_tasks).unwrap_or(u32::MAX))
    }
}

impl StepStreams {
    /// Standard error.
    pub fn stderr(&self) -> &StepOutput {
        self.stderr.as_ref().unwrap_or(&self.stdout)
    }

    /// Whether something goes to the client.
    pub fn has_output(&self) -> bool {
        self.terminal.is_some() || self.stdout == StepOutput::Client || *self.stderr() == StepOutput::Client
    }

    /// Whether the task of a rank reads what the client sends.
    pub fn feeds(&self, rank: u32) -> bool {
        match self.stdin {
            StepInput::AllTasks => true,
            StepInput::Task(only) => only == rank,
            StepInput::Nothing | StepInput::File(_) => self.terminal.is_some() && rank == 0,
        }
    }
}

impl StepTasks {
    /// The command of a rank.
    pub fn argv(&self, rank: u32) -> &[String] {
        self.programs.iter().find(|program| program.ranks.contains(rank)).map_or(&[], |program| &program.argv)
    }
}

/// Groups statuses of tasks: those that are alike together, by the first of their ranks.
pub fn grouped(statuses: impl IntoIterator<Item = (u32, ExitStatus)>) -> Vec<TaskStatus> {
    let mut by_status: BTreeMap<ExitStatus, Vec<u32>> = BTreeMap::new();
    for (rank, status) in statuses {
        by_status.entry(status).or_default().push(rank);
    }
    let mut grouped: Vec<TaskStatus> = by_status
        .into_iter()
        .map(|(status, ranks)| TaskStatus { ranks: ranks.into_iter().collect(), status })
        .collect();
    grouped.sort_by_key(|group| group.ranks.first());
    grouped
}
