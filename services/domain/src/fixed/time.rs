//! The time of a job with a fixed start.

use muster_schemas::Timestamp;

/// The time of a job with a fixed start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FixedTime {
    /// When it starts.
    pub start: Timestamp,
    /// When it ends at the latest.
    pub end: Timestamp,
}

impl FixedTime {
    /// The whole seconds that are left of it at a moment, rounded up.
    pub fn seconds_left(self, now: Timestamp) -> u64 {
        let micros = u64::try_from(self.end.micros_since(self.start.max(now))).unwrap_or(0);
        micros.div_ceil(1_000_000)
    }
}
