//! The outlook for a job that is not submitted, and statistics of the scheduler.

use super::OutcomeWord;
use crate::{
    ids::{JobId, Sequence},
    job::JobSpec,
    plan::ComponentMode,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A job whose start is to be predicted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForecastRequest {
    /// As it would be submitted.
    pub job: JobSpec,
}

/// When and where a job would start if it were submitted now. Nothing was submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Forecast {
    /// The number that it would have.
    pub job: JobId,
    /// When it would start, as far as that can be foreseen. Holds and dependencies do not count.
    pub start: Option<Timestamp>,
    /// Names of its nodes then, in the order of its components.
    pub nodes: Vec<String>,
    /// How many cores it would have in all.
    pub cores: u64,
    /// The queue of its first component.
    pub queue: String,
    /// It was planned on the state after this record.
    pub sequence: Sequence,
}

/// How the scheduler has done since a gateway has begun to count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Statistics {
    /// Since when.
    pub since: Timestamp,
    /// Jobs that were submitted; an array counts as one.
    pub submitted: u64,
    /// Runs that have started.
    pub started: u64,
    /// Runs that were allocated around a job that waits, or for components by a pass of backfill.
    pub backfilled: u64,
    /// Components of them, of jobs that have several.
    pub backfilled_components: u64,
    /// Jobs and tasks that have ended, by how.
    pub ended: BTreeMap<OutcomeWord, u64>,
    /// Plans that changed something.
    pub plans: u64,
    /// For when the last of them was.
    pub last_plan: Option<Timestamp>,
    /// For how many waiting jobs the last one said something.
    pub last_plan_jobs: u64,
    /// Jobs that wait now, tasks of arrays counted singly.
    pub waiting: u64,
    /// Jobs that have resources now.
    pub active: u64,
    /// How long it took to plan, if the planner is in the process of this gateway.
    pub cycles: Option<PlannerCycles>,
    /// The last pass of backfill that looked at jobs with several components, since the log begins; none if the policy starts
    /// them in every pass (SL-P-06).
    pub backfill_pass: Option<BackfillPassView>,
}

/// A pass of backfill that looked at jobs with several components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackfillPassView {
    /// Its number: how many there were.
    pub number: u64,
    /// The time that it planned for.
    pub at: Timestamp,
    /// How it looked at them.
    pub mode: ComponentMode,
}

/// How long it took to make plans, also such that changed nothing, since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannerCycles {
    /// How many there were.
    pub count: u64,
    /// All together, in microseconds.
    pub total_micros: u64,
    /// The last one, in microseconds.
    pub last_micros: u64,
    /// The longest one, in microseconds.
    pub longest_micros: u64,
}
