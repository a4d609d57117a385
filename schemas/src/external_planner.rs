//! The messages between the planner service and a program that plans in its place: JSON, one message per line over
//! standard input and output, one message per payload over the bus. `docs/external-planner.md` describes them.
//!
//! Each cycle shows everything, so that a program need not remember anything and a lost message changes nothing.

use crate::{
    ids::{JobId, Sequence},
    policy::Policy,
    public::documents::json_schema_of,
    resources::{IndexSet, PropertyValue, Request},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};
use utoipa::ToSchema;

/// The version of the protocol that is described here.
pub const PROTOCOL: u32 = 1;

/// A message of the service. Each is answered by one of [`FromPlanner`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToPlanner {
    /// The first message; it is answered by a `hello`.
    Hello(Hello),
    /// Plan; it is answered by a `plan`.
    Cycle(Box<Cycle>),
}

/// A message of a planner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromPlanner {
    /// The answer to `hello`.
    Hello(Hello),
    /// The answer to `cycle`.
    Plan(ExternalPlan),
}

/// Both sides state their version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The version of the protocol: 1.
    pub protocol: u32,
}

/// The planner's whole input. Lists of named things are in the order of the names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cycle {
    /// The last record of the log that this includes. The answer repeats it.
    pub seen: Sequence,
    /// The time to plan for.
    pub at: Timestamp,
    /// Maximum number of starts taken from an answer; the rest can start in the next cycle, which follows at once.
    pub max_starts: u32,
    /// The policy in force. Only the planner enforces its limits.
    #[schema(value_type = Policy)]
    pub policy: Arc<Policy>,
    /// All nodes, in the order in which they were added.
    pub nodes: Vec<CycleNode>,
    /// All floating licences.
    pub licences: Vec<CycleLicence>,
    /// All queues.
    pub queues: Vec<CycleQueue>,
    /// All advance reservations.
    pub reservations: Vec<CycleReservation>,
    /// All runs that hold resources, by the number of the run.
    pub running: Vec<CycleRun>,
    /// The jobs that only wait for limits and resources, by priority of the queue, priority, arrival. Jobs of stopped
    /// queues are left out.
    pub waiting: Vec<CycleJob>,
    /// Total number of such jobs; only the first `max_waiting`, as configured, are shown.
    pub waiting_total: u64,
    /// The starts of the last plan that were refused.
    pub refused: Vec<RefusedJob>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CycleNode {
    /// Its name.
    pub name: String,
    /// Whether it takes jobs: it reports, is not drained and not closed at this time.
    pub available: bool,
    /// Total number of its cores.
    pub cores: u32,
    /// Number of free cores, even if the node takes no jobs or serves one exclusively.
    pub free_cores: u32,
    /// Which ones are free, as `0-3,8`.
    pub free_core_list: IndexSet,
    /// Its sockets; the cores are divided among them in equal, consecutive parts.
    pub sockets: u32,
    /// The model of each GPU, in order of their numbers.
    pub gpus: Vec<String>,
    /// Number of free GPUs.
    pub free_gpus: u32,
    /// Which ones are free, as `0-3`.
    pub free_gpu_list: IndexSet,
    /// Its total memory.
    pub memory_bytes: u64,
    /// Its free memory.
    pub free_memory_bytes: u64,
    /// Number of runs that have a share of it.
    pub runs: u32,
    /// Whether a run has it exclusively.
    pub exclusive: bool,
    /// Its properties.
    pub properties: BTreeMap<String, PropertyValue>,
    /// Times in which it serves no job.
    pub closures: Vec<CycleClosure>,
}

/// A time in which a node serves no job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CycleClosure {
    /// When it begins.
    pub from: Timestamp,
    /// When it ends; `null` if that is not known.
    pub until: Option<Timestamp>,
}

/// A floating licence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CycleLicence {
    /// Its name.
    pub name: String,
    /// The total number.
    pub total: u32,
    /// Number of free ones.
    pub free: u32,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CycleQueue {
    /// Its name.
    pub name: String,
    /// Jobs of a queue with a higher priority come first.
    pub priority: i64,
    /// Whether its jobs are started.
    pub started: bool,
    /// Only these nodes serve it; empty means all.
    pub nodes: Vec<String>,
    /// Number of its running jobs.
    pub running: u32,
    /// Maximum number of its running jobs.
    pub max_running_jobs: Option<u32>,
    /// Maximum number of its running jobs of one user.
    pub max_running_jobs_per_user: Option<u32>,
}

/// An advance reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CycleReservation {
    /// Its name, which jobs that run in it give.
    pub name: String,
    /// When it begins: its nodes serve no other jobs from then on.
    pub start: Timestamp,
    /// When it ends.
    pub end: Timestamp,
    /// The names of its nodes; empty until they have been chosen.
    pub nodes: Vec<String>,
}

/// A run that holds resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CycleRun {
    /// The job, or the task of an array.
    pub job: JobId,
    /// The owner.
    pub user: String,
    /// The owner's primary group.
    pub group: u32,
    /// The account that is charged.
    pub account: Option<String>,
    /// Its queue.
    pub queue: String,
    /// When it got its resources.
    pub allocated: Timestamp,
    /// Its latest end, by its walltime; `null` if it has none or is suspended.
    pub expected_end: Option<Timestamp>,
    /// Its share of each node; for a suspended job, without the cores that it has lent.
    pub nodes: Vec<CycleShare>,
}

/// A run's share of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CycleShare {
    /// The node.
    pub name: String,
    /// Number of cores.
    pub cores: u32,
    /// Number of GPUs.
    pub gpus: u32,
    /// Amount of memory.
    pub memory_bytes: u64,
    /// Whether it has the node exclusively.
    pub exclusive: bool,
}

/// A waiting job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CycleJob {
    /// The job or array.
    pub job: JobId,
    /// Its name, for people.
    pub name: String,
    /// The owner.
    pub user: String,
    /// The owner's primary group.
    pub group: u32,
    /// The account that is charged.
    pub account: Option<String>,
    /// Its queue.
    pub queue: String,
    /// The priority of the queue.
    pub queue_priority: i64,
    /// A higher priority goes first.
    pub priority: i64,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// When it was last put into its queue: the order of arrival.
    pub queued: Timestamp,
    /// For an array, its waiting tasks. They are started individually, as `12_3`.
    pub tasks: Option<CycleTasks>,
    /// Its parts, at least one. They start together or not at all, on different nodes.
    pub components: Vec<CycleComponent>,
}

/// The waiting tasks of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CycleTasks {
    /// Their indices, as `0-9,12`.
    pub indices: IndexSet,
    /// Number of further tasks that may run now; `null` means all.
    pub headroom: Option<u32>,
}

/// A part of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CycleComponent {
    /// Its queue.
    pub queue: String,
    /// The reservation that it runs in.
    pub reservation: Option<String>,
    /// Its alternatives, at least one; a plan says which one it takes.
    pub alternatives: Vec<CycleAlternative>,
}

/// An alternative of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CycleAlternative {
    /// How long it may run, in seconds; `null` means no limit.
    pub walltime_seconds: Option<u64>,
    /// Floating licences: name and number.
    pub licences: BTreeMap<String, u32>,
    /// The minimum that a placement must have, over all nodes.
    pub least: Least,
    /// Whether its nodes serve no other job while it runs.
    pub exclusive: bool,
    /// The requests in full, as in a submission.
    pub requests: Vec<Request>,
    /// Whether each request gets separate nodes; otherwise they may share nodes.
    pub scatter: bool,
}

/// The minimum that a placement must have, over all nodes. A request can ask for more than these sums, such as a number
/// of cores on each node; a start that names no amounts is placed by the full request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Least {
    /// Nodes.
    pub nodes: u64,
    /// Tasks.
    pub tasks: u64,
    /// Cores.
    pub cores: u64,
    /// GPUs.
    pub gpus: u64,
    /// Memory.
    pub memory_bytes: u64,
}

/// A start that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedJob {
    /// The job.
    pub job: JobId,
    /// The reason, for people.
    pub reason: String,
}

/// The answer to a cycle. Everything but `seen` can be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalPlan {
    /// The `seen` of the cycle. An answer with another value is ignored.
    pub seen: Sequence,
    /// Jobs that start now. The ledger checks each of them; those that cannot start are refused individually.
    #[serde(default)]
    pub starts: Vec<ExternalStart>,
    /// Why other jobs wait, for people.
    #[serde(default)]
    pub reasons: Vec<ExternalReason>,
    /// When jobs are expected to start.
    #[serde(default)]
    pub predictions: Vec<ExternalPrediction>,
    /// The latest time of the next cycle; without it, the next cycle comes when something has happened.
    #[serde(default)]
    pub wake: Option<Timestamp>,
}

/// A job that starts now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalStart {
    /// The job, or a task of an array.
    pub job: JobId,
    /// The placement of each component. If empty, the service places the job, by first fit on free resources.
    #[serde(default)]
    pub components: Vec<ExternalComponent>,
}

/// The placement of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExternalComponent {
    /// The index of the alternative, from 0.
    pub alternative: u32,
    /// Its nodes; the first is its lead node, and task ranks follow this order. If none of them names an amount, the
    /// service places the component on these nodes; if the list is empty, anywhere.
    pub nodes: Vec<ExternalShare>,
}

/// A component's share of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExternalShare {
    /// The node.
    pub name: String,
    /// Cores: a number, for which the free cores with the lowest numbers are taken, or a list.
    pub cores: Option<Units>,
    /// GPUs: a number, of the requested models, or a list. If left out, none.
    pub gpus: Option<Units>,
    /// Memory. If left out, a part of the minimum that the job asks for, in proportion to its cores here.
    pub memory_bytes: Option<u64>,
    /// Number of tasks there. If left out, the most that the cores suffice for, up to the requested number.
    pub tasks: Option<u32>,
}

/// A number of cores or GPUs, or a list of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Units {
    /// A number of units.
    Count(u32),
    /// These, as `0-3,8`.
    List(IndexSet),
}

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalReason {
    /// The job or array.
    pub job: JobId,
    /// The reason, for people; at most 1,024 bytes of it are kept.
    pub text: String,
}

/// When a job is expected to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalPrediction {
    /// The job or array.
    pub job: JobId,
    /// When; `null` if it cannot be predicted.
    pub start: Option<Timestamp>,
}

/// The JSON Schemas of the messages: file name and document.
pub fn json_schemas() -> Vec<(String, Value)> {
    vec![
        ("to-planner.json".into(), json_schema_of::<ToPlanner>("what an external planner is told")),
        ("from-planner.json".into(), json_schema_of::<FromPlanner>("what an external planner answers")),
    ]
}
