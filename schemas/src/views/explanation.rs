//! Why a job waits, or why it started then and there.

use super::{ReasonView, RunNodeView};
use crate::{
    event::JobChange,
    ids::{JobId, RunId, Sequence},
    job::JobState,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a job waits or started, as of a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The job.
    pub job: JobId,
    /// Its state then.
    pub state: JobState,
    /// The explanation is based on the state after this record.
    pub sequence: Sequence,
    /// The moment that was planned for.
    pub time: Timestamp,
    /// If it waits: for what, and what would help.
    pub waiting: Option<WaitExplanation>,
    /// If it runs or has run: the reasons for its latest start.
    pub start: Option<StartExplanation>,
}

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitExplanation {
    /// The gate or the shortage that holds it.
    pub reason: ReasonView,
    /// Whether nothing holds it any more: the next plan starts it.
    pub starts_now: bool,
    /// Whether it would start now if no other job waited and nothing were promised; `None` if one of its own gates is
    /// closed, so that it does not wait for room.
    pub fits_alone: Option<bool>,
    /// Number of waiting jobs ahead of it; an array counts as one. `None` if it is not in the order yet, because one of
    /// its own gates is closed.
    pub ahead: Option<u64>,
    /// The first jobs ahead of it, in order.
    pub first_ahead: Vec<JobAhead>,
    /// The limits that count it, whether they hold it or not.
    pub limits: Vec<LimitView>,
    /// The reservation for it.
    pub promise: Option<PromiseView>,
    /// When it is expected to start, if that can be predicted.
    pub expected_start: Option<Timestamp>,
    /// Changes of its request, the smallest first. With any one of them the next plan would start it; each was checked
    /// by planning.
    pub changes: Vec<SuggestedChange>,
}

/// A waiting job ahead of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobAhead {
    /// The job.
    pub job: JobId,
    /// Why it waits itself.
    pub reason: Option<ReasonView>,
    /// Its promised start, if it has one.
    pub promised_start: Option<Timestamp>,
}

/// A limit on simultaneous use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitView {
    /// The limit, for people: `10 running jobs of ada`.
    pub text: String,
    /// The amount in use.
    pub used: u64,
    /// The amount that the job would add.
    pub wanted: u64,
    /// The maximum amount in use.
    pub most: u64,
}

/// The promise of a waiting job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PromiseView {
    /// When it starts.
    pub start: Timestamp,
    /// When it ends, by its walltime; `None` if it has none.
    pub end: Option<Timestamp>,
    /// Its nodes; empty if the promise is only for this plan, so that they can still change.
    pub nodes: Vec<NodePromise>,
}

/// The promised share of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodePromise {
    /// The node.
    pub node: String,
    /// Number of cores.
    pub cores: u64,
    /// Number of GPUs.
    pub gpus: u64,
    /// Memory.
    pub memory_bytes: u64,
    /// Whether no other job may use the rest.
    pub exclusive: bool,
}

/// A change of a request that would let the next plan start the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SuggestedChange {
    /// The subject of the change.
    pub kind: ChangeKind,
    /// The change, for people: `walltime 30 min instead of 2 h`.
    pub text: String,
    /// The change, in the form that a modification of the job takes.
    pub change: JobChange,
}

/// The subject of a suggested change, from the smallest to the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// A shorter walltime.
    Walltime,
    /// Fewer nodes.
    Nodes,
    /// Fewer tasks.
    Tasks,
    /// Fewer cores for each task.
    CpusPerTask,
    /// Less memory.
    Memory,
    /// Fewer GPUs.
    Gpus,
    /// Another queue.
    Queue,
    /// Only one of its alternatives, which would start now although another one ends sooner.
    Alternative,
}

/// Why a run started then and there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StartExplanation {
    /// The run.
    pub run: RunId,
    /// The record that gave it its resources.
    pub sequence: Sequence,
    /// When it got its resources.
    pub allocated: Timestamp,
    /// When it was put into the queue.
    pub queued: Timestamp,
    /// How long it waited.
    pub waited_seconds: i64,
    /// Where it started.
    pub nodes: Vec<RunNodeView>,
    /// The last record that the planner had seen when it decided this; `None` if no plan was recorded.
    pub seen: Option<Sequence>,
    /// Its promised start, if it had one.
    pub promised_start: Option<Timestamp>,
    /// Its predicted start, if it had one.
    pub expected_start: Option<Timestamp>,
    /// The last records before the decision that gave it room or opened its gates, oldest first.
    pub because: Vec<Occurrence>,
    /// Why it waited, oldest first.
    pub reasons: Vec<PastReason>,
    /// The reasons are given from this record on; earlier ones are in the log but were not searched for.
    pub reasons_from: Sequence,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Occurrence {
    /// The record.
    pub sequence: Sequence,
    /// When.
    pub time: Timestamp,
    /// What happened, for people.
    pub text: String,
}

/// Why a job waited from a moment on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PastReason {
    /// Since when.
    pub since: Timestamp,
    /// Why.
    pub reason: ReasonView,
}
