//! The tables of users.

use muster_schemas::{JobId, crontab::CronLines};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The table of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crontab {
    /// Its text.
    pub text: Arc<str>,
    /// Its jobs, in the order of its lines.
    pub jobs: Vec<RepeatedJob>,
}

/// A job of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepeatedJob {
    /// The job.
    pub job: JobId,
    /// Its lines and times.
    pub lines: Arc<CronLines>,
    /// Whether it is over: its lines do nothing any more.
    pub is_over: bool,
}
