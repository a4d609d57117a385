//! The plan, and how accurate past plans were.

use super::{NodePromise, ReasonView};
use crate::{
    energy::PowerPhase,
    ids::{JobId, Sequence},
    plan::ReservedNodes,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Runs, promises and predictions, as of a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Timetable {
    /// The answer shows the state after this record.
    pub sequence: Sequence,
    /// The moment.
    pub time: Timestamp,
    /// The name of the policy in force.
    pub policy: String,
    /// Runs, by expected end.
    pub running: Vec<TimetableRun>,
    /// Waiting jobs with open gates, in the order in which they are planned.
    pub waiting: Vec<TimetableWait>,
    /// Number of waiting jobs left out because of the requested limit; an array counts as one.
    pub more_waiting: u64,
    /// Advance reservations that are not over, by start.
    pub reservations: Vec<TimetableReservation>,
    /// Times in which nodes serve no jobs, by beginning.
    pub closures: Vec<TimetableClosure>,
    /// Nodes that take no jobs now, because they are drained or do not report.
    pub unavailable_nodes: Vec<String>,
    /// Nodes that sleep or are on their way, by name.
    #[serde(default)]
    pub sleeping: Vec<TimetableSleep>,
}

/// What sets a job apart in a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct TimetableMarks {
    /// The planning domain that it opens.
    pub opens_domain: Option<String>,
    /// The planning domain that it runs in.
    pub domain: Option<String>,
    /// Whether it makes way for jobs of other service classes (best effort).
    pub makes_way: bool,
    /// Whether its start is fixed.
    pub has_fixed_start: bool,
}

/// A node that sleeps, or is on its way to sleep or from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimetableSleep {
    /// The node.
    pub node: String,
    /// What it does.
    pub phase: PowerPhase,
    /// Since when.
    pub since: Timestamp,
}

/// A run that holds resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimetableRun {
    /// The job or task.
    pub job: JobId,
    /// Its owner.
    pub user: String,
    /// Its queue.
    pub queue: String,
    /// When it got its resources.
    pub start: Timestamp,
    /// Its latest end, by its walltime; `None` if it has none.
    pub expected_end: Option<Timestamp>,
    /// Its share of each node.
    pub nodes: Vec<NodePromise>,
    /// What sets it apart.
    #[serde(default)]
    pub marks: TimetableMarks,
}

/// A job that waits for its turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimetableWait {
    /// Its place in the order, from 1.
    pub place: u64,
    /// The job, or the array whose tasks wait.
    pub job: JobId,
    /// Its owner.
    pub user: String,
    /// Its queue.
    pub queue: String,
    /// Its longest walltime; `None` if it has none.
    pub walltime_seconds: Option<u64>,
    /// Why it waits.
    pub reason: Option<ReasonView>,
    /// When it is expected to start, if that can be predicted.
    pub expected_start: Option<Timestamp>,
    /// Its promised start, if it has one.
    pub promised_start: Option<Timestamp>,
    /// Its promised share of each node.
    pub nodes: Vec<NodePromise>,
    /// What sets it apart.
    #[serde(default)]
    pub marks: TimetableMarks,
}

/// An advance reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimetableReservation {
    /// Its name.
    pub name: String,
    /// When it begins.
    pub start: Timestamp,
    /// When it ends.
    pub end: Timestamp,
    /// Its nodes; empty until they are chosen.
    pub nodes: Vec<String>,
    /// The request.
    pub asked: ReservedNodes,
}

/// A time in which a node serves no jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimetableClosure {
    /// The node.
    pub node: String,
    /// When it begins.
    pub from: Timestamp,
    /// When it ends; `None` if that is not known.
    pub until: Option<Timestamp>,
    /// Why.
    pub reason: String,
}

/// How accurate predictions of starts were.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanAccuracy {
    /// The period begins here: jobs that started from this time on are counted.
    pub since: Timestamp,
    /// The end of the period.
    pub until: Timestamp,
    /// Number of jobs that started.
    pub started: u64,
    /// Number of them without a prediction before the start: most of these started at once.
    pub unforeseen: u64,
    /// The first prediction of each job compared with its start.
    pub first: PredictionErrors,
    /// The same by queue.
    pub queues: Vec<QueuePredictionErrors>,
    /// Predictions for a job this long before its start, compared with that start.
    pub leads: Vec<LeadPredictionErrors>,
    /// The jobs with the largest errors of their first predictions.
    pub worst: Vec<PredictionMiss>,
}

/// Errors of predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PredictionErrors {
    /// Number of compared predictions.
    pub count: u64,
    /// Mean of the absolute errors, in seconds; 0 without any.
    pub mean_seconds: f64,
    /// Median of the absolute errors, in seconds; 0 without any.
    pub median_seconds: f64,
    /// 95th percentile of the absolute errors, in seconds; 0 without any.
    pub p95_seconds: f64,
    /// The share of jobs that started no later than predicted, 0 to 1; 0 without any. Up to a second later still
    /// counts, because a plan follows events by some milliseconds.
    pub kept_share: f64,
}

/// Errors of predictions for jobs of a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueuePredictionErrors {
    /// The queue.
    pub queue: String,
    /// The errors.
    #[serde(flatten)]
    pub errors: PredictionErrors,
}

/// Errors of the predictions in force a given time before the start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LeadPredictionErrors {
    /// Time before the start.
    pub lead_seconds: i64,
    /// The errors.
    #[serde(flatten)]
    pub errors: PredictionErrors,
}

/// A prediction and the actual start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PredictionMiss {
    /// The job.
    pub job: JobId,
    /// Its queue.
    pub queue: String,
    /// When it was first predicted.
    pub predicted_at: Timestamp,
    /// The predicted start.
    pub predicted: Timestamp,
    /// The actual start.
    pub started: Timestamp,
}
