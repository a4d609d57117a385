//! Steps: programs that are started inside a running job, as tasks on any of its nodes, with their own streams.

use crate::{
    binding::Binding,
    ids::NodeId,
    job::{ExitStatus, WarningSignal},
    resources::{Gpus, IndexSet},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};
use utoipa::ToSchema;

/// A step to launch inside a running job. Its tasks are numbered from 0 over all its groups: their ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StepSpec {
    /// Its name, for people; at most 1,024 bytes.
    pub name: String,
    /// The working directory of its tasks; `None` means that of the job.
    pub working_directory: Option<String>,
    /// The environment of its tasks, before muster's own variables are added; `None` means that of the job.
    pub environment: Option<BTreeMap<String, String>>,
    /// File mode creation mask; `None` means that of the job.
    pub umask: Option<u32>,
    /// Its parts, each with its own command and nodes. Among the groups of one component, each node appears at most
    /// once.
    pub groups: Vec<StepGroup>,
    /// Sources and destinations of the standard streams of its tasks.
    pub streams: StepStreams,
    /// Variables that differ from task to task, by name. They override other variables.
    pub variables: BTreeMap<String, TaskVariable>,
    /// Whether it shares cores: it may use those of other steps, and they may use its own.
    pub overlaps: bool,
    /// How long it may run, in seconds; `None` means as long as its job.
    pub walltime_seconds: Option<u64>,
    /// Time from SIGTERM to SIGKILL, in seconds; `None` means the cluster's setting.
    pub kill_grace_seconds: Option<u32>,
    /// Signal sent this long before the end of its walltime, or of its job's if it has none.
    pub warning: Option<WarningSignal>,
    /// Whether the first task that does not exit with 0 ends all others.
    pub ends_on_failure: bool,
    /// Values that a dialect wants back unchanged, by `dialect.name`.
    pub attributes: BTreeMap<String, String>,
    /// The dialect whose command launched it; `None` means that of the job.
    pub dialect: Option<String>,
    /// How its tasks find each other if they are processes of a parallel program; `None` offers them nothing (SL-W-03).
    pub process_management: Option<ProcessManagement>,
}

/// The interface through which the processes of a parallel program learn their rank, and exchange the addresses at
/// which they reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessManagement {
    /// PMI, versions 1 and 2, over a socket that each task inherits (SL-W-04).
    Pmi,
    /// PMIx, through the library of the nodes (SL-W-05).
    Pmix,
}

/// A part of a step on nodes of one component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StepGroup {
    /// The component of the job whose nodes it uses, from 0.
    pub component: u32,
    /// The nodes, in the order in which tasks see them. If the only group of a step has none, its tasks fill the job's
    /// nodes, across all components; with [`StepSpec::overlaps`] they may use all cores of the job there.
    pub places: Vec<StepPlace>,
    /// Cores for each task; 0 means 1.
    pub cpus_per_task: u32,
    /// Memory on each node that no other step uses meanwhile; `None` asks for none.
    pub memory_bytes: Option<u64>,
    /// The command of each of its ranks.
    pub programs: Vec<StepProgram>,
    /// Its own variables, which override those of the step.
    pub environment: BTreeMap<String, String>,
    /// The working directory of its tasks; `None` means [`StepSpec::working_directory`].
    pub working_directory: Option<String>,
    /// Source of the standard input of its tasks; `None` means [`StepStreams::stdin`].
    pub stdin: Option<StepInput>,
    /// For the only group of a step, without places: number of tasks to put on the job's nodes; `None` means the number
    /// that the job has. With places this is `None`.
    pub tasks: Option<u32>,
    /// For such a group: number of the job's nodes to use; `None` means all that the tasks need.
    pub nodes: Option<u32>,
    /// What its tasks are bound to; `None` means the defaults of [`Binding`].
    pub binding: Option<Binding>,
    /// GPUs that no other step has meanwhile, for each node, each task or the whole group. `None` gives its tasks all
    /// GPUs that the job has on their nodes; others may use these too.
    pub gpus: Option<Gpus>,
    /// Which of the step's GPUs on its node a task sees; `None` means all of them.
    pub gpu_binding: Option<GpuBinding>,
    /// The image of the container that each of its tasks runs in, as in [`crate::job::Launch::container`]; `None`: no
    /// container, whatever that of the job is.
    pub container: Option<String>,
    /// GPUs of further models, beside those of [`StepGroup::gpus`]; then each of all these names a model of its own.
    #[serde(default)]
    pub more_gpus: Vec<Gpus>,
}

/// Which of the step's GPUs on a node each of its tasks there sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum GpuBinding {
    /// This many, which no other task sees as long as there are enough.
    PerTask(u32),
    /// One, which this many tasks with consecutive ranks share.
    Shared(u32),
    /// Those with these indices among the step's GPUs on the node: the first task the first set, and so on, from the
    /// beginning again once the list is over.
    Listed(Vec<IndexSet>),
}

impl GpuBinding {
    /// The GPUs that the task with an index among those on its node sees, of all that the step has there. Without any
    /// that fits, it sees none.
    pub fn of_task(&self, local_rank: u32, gpus: &IndexSet) -> IndexSet {
        let all: Vec<u32> = gpus.iter().collect();
        if all.is_empty() {
            return IndexSet::new();
        }
        match self {
            Self::PerTask(count) => {
                let first = local_rank as usize * *count as usize;
                (first..first + (*count as usize).min(all.len())).map(|at| all[at % all.len()]).collect()
            }
            Self::Shared(tasks) => IndexSet::from_iter([all[(local_rank / (*tasks).max(1)) as usize % all.len()]]),
            Self::Listed(sets) => {
                let known = IndexSet::first_n(u32::try_from(all.len()).unwrap_or(u32::MAX));
                let set = sets.get(local_rank as usize % sets.len().max(1)).map(|set| set.intersection(&known));
                set.iter().flat_map(IndexSet::iter).map(|at| all[at as usize]).collect()
            }
        }
    }
}

/// The tasks of a step on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StepPlace {
    /// The node's name.
    pub node: String,
    /// The ranks of the tasks there, not necessarily consecutive.
    pub ranks: IndexSet,
    /// Number of cores for the step there; `None` means `cpus_per_task` for each task.
    #[serde(default)]
    pub cores: Option<u32>,
}

/// The command of some tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StepProgram {
    /// The ranks that run it; empty in a group without places, where all ranks do.
    #[serde(default)]
    pub ranks: IndexSet,
    /// The command and its arguments. A command without a slash is looked up in `PATH`.
    pub argv: Vec<String>,
}

/// Sources and destinations of the standard streams of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StepStreams {
    /// Standard input.
    pub stdin: StepInput,
    /// Standard output.
    pub stdout: StepOutput,
    /// Standard error; `None` means the same as standard output.
    pub stderr: Option<StepOutput>,
    /// Whether to append to existing output files instead of truncating them.
    pub append_output: bool,
    /// The task of rank 0 gets a terminal of this size, connected to the client, instead of its streams.
    pub terminal: Option<TerminalSize>,
}

/// The source of standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepInput {
    /// No input.
    #[default]
    Nothing,
    /// A file, by a pattern as in [`crate::job::Launch::stdin`].
    File(String),
    /// The client's input, for every task.
    AllTasks,
    /// The client's input, for the task of this rank; others get none.
    Task(u32),
}

/// The destination of output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepOutput {
    /// To the client.
    #[default]
    Client,
    /// To a file, by a pattern as in [`crate::job::Launch::stdout`], where `%s` is the step and `%n` the node's index
    /// in it.
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
    /// Its index among the step's tasks on its node, from 0.
    LocalRank,
    /// The index of its node among the step's nodes, from 0.
    NodeIndex,
    /// The name of its node.
    NodeName,
    /// The id of its process.
    ProcessId,
    /// Number of the step's tasks on its node.
    TasksOnNode,
    /// The ranks of those tasks, separated by commas.
    RanksOnNode,
    /// Number of the step's cores on its node.
    CoresOnNode,
    /// The numbers of those cores, as ranges.
    Cores,
    /// Number of steps of the run launched before its own: the step's number, counted from 0.
    StepsBefore,
}

/// A step's share of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepShare {
    /// The node.
    pub node: NodeId,
    /// The component of the job that it serves, from 0.
    pub component: u32,
    /// Number of tasks there.
    pub tasks: u32,
    /// The cores that they may use.
    pub cores: IndexSet,
    /// Memory that no other step uses meanwhile.
    pub memory_bytes: u64,
    /// The cores of each task there, in order of ranks; a shorter list is used again from its beginning. Empty without a
    /// [`Binding`] of cores.
    #[serde(default)]
    pub bound: Vec<IndexSet>,
    /// The GPUs that its tasks may use, if no other step may; `None` means all of the job's there.
    pub gpus: Option<IndexSet>,
}

/// Tasks that ended with the same status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskStatus {
    /// Their ranks.
    pub ranks: IndexSet,
    /// How they ended.
    pub status: ExitStatus,
}

/// Data for a node's part of a step, in addition to the common part of every launch.
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
    /// See [`StepSpec::process_management`].
    pub process_group: Option<ProcessGroup>,
    /// See [`StepGroup::binding`].
    pub binding: Option<Binding>,
    /// See [`StepShare::bound`].
    pub bound: Vec<IndexSet>,
    /// See [`StepGroup::gpu_binding`].
    pub gpu_binding: Option<GpuBinding>,
    /// The GPUs of the whole job on the node.
    pub gpus_of_job: IndexSet,
}

/// The processes of a parallel program: all tasks of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessGroup {
    /// How they find each other.
    pub management: ProcessManagement,
    /// The ranks at each of [`crate::node::LaunchOrder::nodes`], the *places* of the step.
    pub ranks: Arc<Vec<IndexSet>>,
}

impl StepSpec {
    /// All its places, in the order of nodes, each with its group.
    pub fn places(&self) -> impl Iterator<Item = (&StepGroup, &StepPlace)> {
        self.groups.iter().flat_map(|group| group.places.iter().map(move |place| (group, place)))
    }

    /// The standard input of the tasks of a group.
    pub fn stdin_of<'a>(&'a self, group: &'a StepGroup) -> &'a StepInput {
        group.stdin.as_ref().unwrap_or(&self.streams.stdin)
    }

    /// The working directory of the tasks of a group, if it is not that of the job.
    pub fn working_directory_of<'a>(&'a self, group: &'a StepGroup) -> Option<&'a String> {
        group.working_directory.as_ref().or(self.working_directory.as_ref())
    }

    /// The group of each of its places, in their order.
    pub fn groups_of_places(&self) -> impl Iterator<Item = usize> {
        self.groups.iter().enumerate().flat_map(|(at, group)| group.places.iter().map(move |_| at))
    }

    /// Total number of tasks.
    pub fn total_tasks(&self) -> u32 {
        let tasks = self.places().map(|(_, place)| place.ranks.len()).sum::<u64>();
        u32::try_from(tasks).unwrap_or(u32::MAX)
    }
}

impl StepGroup {
    /// Number of cores that it takes at a place.
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

    /// Whether any output goes to the client.
    pub fn has_output(&self) -> bool {
        self.terminal.is_some() || self.stdout == StepOutput::Client || *self.stderr() == StepOutput::Client
    }

    /// Whether the task of a rank reads the client's input.
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

/// Groups tasks with the same status, in order of their first ranks.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_sees_the_gpus_that_it_is_bound_to() {
        let gpus: IndexSet = "2-3,6-7".parse().expect("a set");
        let seen = |binding: GpuBinding| [0, 1, 2, 3, 4].map(|rank| binding.of_task(rank, &gpus).to_string());
        assert_eq!(seen(GpuBinding::PerTask(1)), ["2", "3", "6", "7", "2"]);
        assert_eq!(seen(GpuBinding::PerTask(2)), ["2-3", "6-7", "2-3", "6-7", "2-3"]);
        assert_eq!(seen(GpuBinding::PerTask(u32::MAX)), ["2-3,6-7"; 5], "all that there are");
        assert_eq!(seen(GpuBinding::Shared(2)), ["2", "2", "3", "3", "6"]);
        let set = |text: &str| text.parse::<IndexSet>().expect("a set");
        let listed = GpuBinding::Listed(vec![set("3"), set("0-1"), set("9")]);
        assert_eq!(seen(listed), ["7", "2-3", "", "7", "2-3"]);
        assert_eq!(GpuBinding::Listed(Vec::new()).of_task(0, &gpus), IndexSet::new());
        assert_eq!(GpuBinding::PerTask(1).of_task(0, &IndexSet::new()), IndexSet::new());
    }
}
