//! Why runs and components are stopped.

use muster_schemas::{command::JobEnding, event::StopReason};

/// The reason for stopping a run or component with this kind of ending.
pub(crate) fn stop_reason(ending: &JobEnding) -> StopReason {
    match (ending.is_finished, ending.is_forced) {
        (false, false) => StopReason::Cancelled,
        (true, false) => StopReason::Finished,
        (false, true) => StopReason::CancelledAtOnce,
        (true, true) => StopReason::FinishedAtOnce,
    }
}

/// Whether stopping for this reason allows no grace time.
pub(crate) fn is_at_once(reason: StopReason) -> bool {
    matches!(reason, StopReason::CancelledAtOnce | StopReason::FinishedAtOnce)
}
