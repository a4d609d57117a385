//! Queries to an accounting service, and its answers.
//!
//! Usage is kept in windows of equal length, counted from 1970-01-01 00:00 UTC. A run that spans several windows is
//! divided among them to the microsecond.

use crate::{ids::Sequence, job::Outcome, time::Timestamp};
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;
use utoipa::ToSchema;

/// A query for usage: the payload of a request on [`crate::subjects::ACCOUNTING_USAGE`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UsageQuery {
    /// Windows that end after this time; `None` means all from the first.
    pub from: Option<Timestamp>,
    /// Windows that begin before this time; `None` means all to the last.
    pub to: Option<Timestamp>,
    /// Only of this user.
    pub user: Option<String>,
    /// Only of this account.
    pub account: Option<String>,
    /// Only in this queue.
    pub queue: Option<String>,
    /// The dimensions that separate the rows of the answer; everything else is summed up. Empty means every
    /// dimension.
    pub by: Vec<UsageDimension>,
    /// Answer only once every record up to this is counted.
    pub at_least: Option<Sequence>,
    /// Answer as of a past moment; `None` means now.
    pub at: Option<UsageMoment>,
}

/// The moment that usage is queried for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageMoment {
    /// Records up to this are counted.
    pub sequence: Sequence,
    /// Running jobs count up to this time; `None` means the time of that record.
    pub time: Option<Timestamp>,
}

/// A dimension that can separate rows of usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageDimension {
    /// The window of time.
    Window,
    /// The job's owner.
    User,
    /// The account or project that is charged.
    Account,
    /// The queue.
    Queue,
}

/// The answer to a [`UsageQuery`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageAnswer {
    /// Every record up to this is counted.
    pub sequence: Sequence,
    /// Length of a window in seconds.
    pub window_seconds: u64,
    /// In order of window, user, account, queue.
    pub rows: Vec<UsageRow>,
}

/// Requests and usage of one user, account and queue in one window, or summed up over dimensions that were not
/// separated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageRow {
    /// When the window begins; `None` if windows are summed up.
    pub window_start: Option<Timestamp>,
    /// The job's owner; `None` if users are summed up.
    pub user: Option<String>,
    /// The account; `None` if accounts are summed up or none was charged.
    pub account: Option<String>,
    /// The queue; `None` if queues are summed up.
    pub queue: Option<String>,
    /// The amounts.
    pub amounts: UsageAmounts,
}

/// Amounts of usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageAmounts {
    /// Cores times the requested time, in core-microseconds: from the start of a run, as if it lasted its whole
    /// walltime. A run without a walltime counts the time that it took.
    pub asked_core_micros: u128,
    /// Cores times the time from start to end of a run, in core-microseconds. A suspended run keeps its cores and still
    /// counts.
    pub used_core_micros: u128,
    /// GPUs times the time from start to end of a run, in GPU-microseconds.
    pub used_gpu_micros: u128,
    /// Processor time of the processes, in microseconds, in the window in which their run ended.
    pub cpu_time_micros: u128,
    /// Runs that started.
    pub started_runs: u64,
    /// Runs that ended successfully.
    pub completed_runs: u64,
    /// Runs that ended in another way, including requeued runs.
    pub other_runs: u64,
}

impl UsageAmounts {
    /// Whole core-seconds requested, rounded to the nearest.
    pub const fn asked_core_seconds(&self) -> u64 {
        whole_seconds(self.asked_core_micros)
    }

    /// Whole core-seconds used, rounded to the nearest.
    pub const fn used_core_seconds(&self) -> u64 {
        whole_seconds(self.used_core_micros)
    }

    /// Counts the end of a run.
    pub const fn count_end(&mut self, outcome: &Outcome) {
        if outcome.is_success() { self.completed_runs += 1 } else { self.other_runs += 1 }
    }
}

const fn whole_seconds(micros: u128) -> u64 {
    let seconds = (micros + 500_000) / 1_000_000;
    if seconds > u64::MAX as u128 { u64::MAX } else { seconds as u64 }
}

impl AddAssign for UsageAmounts {
    fn add_assign(&mut self, other: Self) {
        self.asked_core_micros += other.asked_core_micros;
        self.used_core_micros += other.used_core_micros;
        self.used_gpu_micros += other.used_gpu_micros;
        self.cpu_time_micros += other.cpu_time_micros;
        self.started_runs += other.started_runs;
        self.completed_runs += other.completed_runs;
        self.other_runs += other.other_runs;
    }
}
