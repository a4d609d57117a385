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

/// An explanation of a job's turn at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The job.
    pub job: JobId,
    /// Where it stood.
    pub state: JobState,
    /// It is told as after this record.
    pub sequence: Sequence,
    /// The moment that was planned for.
    pub time: Timestamp,
    /// If it waits: for what, and what would help.
    pub waiting: Option<WaitExplanation>,
    /// If it runs or has run: how its latest start came about.
    pub start: Option<StartExplanation>,
}

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitExplanation {
    /// The gate or the shortage that holds it.
    pub reason: ReasonView,
    /// Whether nothing holds it any longer: the next plan starts it.
    pub starts_now: bool,
    /// Whether it would start now if no other job waited and nothing were promised; `None` if one of its own gates is
    /// shut, so that room is not what it waits for.
    pub fits_alone: Option<bool>,
    /// How many waiting jobs are in front of it; an array counts as one. `None` if it is not in the order yet,
    /// because one of its own gates is shut.
    pub ahead: Option<u64>,
    /// The first of them, in order.
    pub first_ahead: Vec<JobAhead>,
    /// The limits that count it, whether they hold it or not.
    pub limits: Vec<LimitView>,
    /// The reservation for it.
    pub promise: Option<PromiseView>,
    /// When it is thought to start, as far as it can be foreseen.
    pub expected_start: Option<Timestamp>,
    /// Changes of its request with any one of which the next plan would start it, the smallest first. Each has been
    /// planned with.
    pub changes: Vec<SuggestedChange>,
}

/// A waiting job in front of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobAhead {
    /// The job.
    pub job: JobId,
    /// Why it waits itself.
    pub reason: Option<ReasonView>,
    /// When it was promised to start, if it was.
    pub promised_start: Option<Timestamp>,
}

/// A limit on what may be in use at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitView {
    /// The limit, for people: `10 running jobs of ada`.
    pub text: String,
    /// How much of what it counts is in use.
    pub used: u64,
    /// How much the job would add.
    pub wanted: u64,
    /// How much may be in use.
    pub most: u64,
}

/// The promise of a waiting job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PromiseView {
    /// From then on.
    pub start: Timestamp,
    /// Until then, by its walltime; `None` if it has none.
    pub end: Option<Timestamp>,
    /// Where; empty if the promise is only for this plan, so that its place can still change.
    pub nodes: Vec<NodePromise>,
}

/// The promised share of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodePromise {
    /// The node.
    pub node: String,
    /// How many cores.
    pub cores: u64,
    /// How many GPUs.
    pub gpus: u64,
    /// Memory.
    pub memory_bytes: u64,
    /// Whether no other job may use the rest.
    pub exclusive: bool,
}

/// A change of a request with which the next plan would start the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SuggestedChange {
    /// The subject of the change.
    pub kind: ChangeKind,
    /// The change, for people: `walltime 30 min instead of 2 h`.
    pub text: String,
    /// The change as a modification of the job takes it.
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
    /// One of its alternatives alone, which would start now although another one ends sooner.
    Alternative,
}

/// How the start of a run came about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StartExplanation {
    /// The run.
    pub run: RunId,
    /// The record that gave it its resources.
    pub sequence: Sequence,
    /// When it got them.
    pub allocated: Timestamp,
    /// When it was put into the queue.
    pub queued: Timestamp,
    /// How long it waited.
    pub waited_seconds: i64,
    /// Where it started.
    pub nodes: Vec<RunNodeView>,
    /// The record that the planner's state was as after when it decided this; `None` if no plan was recorded.
    pub seen: Option<Sequence>,
    /// Its promised start, if it had one.
    pub promised_start: Option<Timestamp>,
    /// When it had been thought to start, if that was foreseen.
    pub expected_start: Option<Timestamp>,
    /// The last records before the decision that gave it room or opened its way, oldest first.
    pub because: Vec<Occurrence>,
    /// Why it waited, oldest first.
    pub reasons: Vec<PastReason>,
    /// The reasons are told from this record on; those of an earlier time are in the log, but were not looked for.
    pub reasons_from: Sequence,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Occurrence {
    /// The record.
    pub sequence: Sequence,
    /// When.
    pub time: Timestamp,
    /// What, for people.
    pub text: String,
}

/// Why a job waited from some moment on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PastReason {
    /// From then on.
    pub since: Timestamp,
    /// Why.
    pub reason: ReasonView,
}
