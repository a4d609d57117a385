//! Forecasts for jobs that are not submitted, and statistics of the scheduler.

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

/// A request to predict the start of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForecastRequest {
    /// The job, as it would be submitted.
    pub job: JobSpec,
}

/// When and where a job would start if it were submitted now. Nothing was submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Forecast {
    /// The number that it would have.
    pub job: JobId,
    /// When it would start, if that can be predicted. Holds and dependencies are ignored.
    pub start: Option<Timestamp>,
    /// Names of its nodes then, in the order of its components.
    pub nodes: Vec<String>,
    /// Total number of cores.
    pub cores: u64,
    /// The queue of its first component.
    pub queue: String,
    /// The forecast is based on the state after this record.
    pub sequence: Sequence,
}

/// Statistics of the scheduler since a gateway began to count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Statistics {
    /// Since when.
    pub since: Timestamp,
    /// Submitted jobs; an array counts as one.
    pub submitted: u64,
    /// Runs that have started.
    pub started: u64,
    /// Runs allocated ahead of a waiting job, or for components by a backfill pass.
    pub backfilled: u64,
    /// Components of those runs, if the job has several.
    pub backfilled_components: u64,
    /// Jobs and tasks that have ended, by outcome.
    pub ended: BTreeMap<OutcomeWord, u64>,
    /// Plans that changed something.
    pub plans: u64,
    /// The time that the last such plan was made for.
    pub last_plan: Option<Timestamp>,
    /// Number of waiting jobs for which the last plan had results.
    pub last_plan_jobs: u64,
    /// Jobs waiting now; each array task counts as one.
    pub waiting: u64,
    /// Jobs that have resources now.
    pub active: u64,
    /// Planning times, if the planner is in the process of this gateway.
    pub cycles: Option<PlannerCycles>,
    /// The last backfill pass in the log that considered jobs with several components; none if the policy starts them
    /// in every pass (SL-P-06).
    pub backfill_pass: Option<BackfillPassView>,
}

/// A backfill pass that considered jobs with several components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackfillPassView {
    /// Its number: the count of such passes.
    pub number: u64,
    /// The time that it planned for.
    pub at: Timestamp,
    /// How it considered them.
    pub mode: ComponentMode,
}

/// Planning times since the process started, including plans that changed nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannerCycles {
    /// Number of plans.
    pub count: u64,
    /// Total time, in microseconds.
    pub total_micros: u64,
    /// Time of the last plan, in microseconds.
    pub last_micros: u64,
    /// The longest time, in microseconds.
    pub longest_micros: u64,
}
