//! Parts of the week, spans, and offsets of local time (OAR-Q-10).

use crate::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The seconds of a week.
pub const WEEK_SECONDS: u32 = 7 * 86_400;

/// A part of every week, in seconds since Monday 00:00 of local time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QuotaPeriod {
    /// Its begin.
    pub begin: u32,
    /// Its end, at most 604,800.
    pub end: u32,
    /// The number of its rules, from 0.
    pub set: u32,
}

/// A span that goes before the week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QuotaSpan {
    /// Its begin.
    pub begin: Timestamp,
    /// Its end.
    pub end: Timestamp,
    /// The number of its rules, from 0.
    pub set: u32,
}

/// From an instant on, local time is this far ahead of UTC. The table has them, because it must mean the same on every machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ZoneOffset {
    /// The instant.
    pub from: Timestamp,
    /// Seconds ahead of UTC, negative if it is behind.
    pub seconds: i32,
}
