//! Why a call ends without a result from its program, and its time limits.

use crate::{call::Captured, protocol::Order};
use muster_schemas::filter::FilterExit;
use std::time::Duration;

/// The time from SIGTERM to SIGKILL (HPC-F-06).
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Why a call ends without a result from its program.
pub(super) enum Stop {
    /// With this result instead of a verdict, and what the program wrote to standard error.
    Result(FilterExit, Captured),
    /// This machine cannot make it, for this reason.
    Failed(String),
    /// Nobody waits for it any longer.
    RunnerGone,
}

pub(super) const fn time_limit(order: &Order) -> Duration {
    Duration::from_secs(order.time_limit_seconds as u64)
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
