//! What the commands print about jobs, nodes and partitions.

mod cells;
pub mod columns;
pub mod record;
pub mod sacct;
pub mod sacctmgr;
pub mod scontrol;
pub mod sdiag;
pub mod sinfo;
pub mod squeue;
pub mod step;
mod tres;

use crate::moment::TimeFormat;
use jiff::tz::TimeZone;
use muster_schemas::time::Timestamp;

/// When and where something is shown: ages are counted to `now`, moments are told in the zone.
#[derive(Clone, Debug)]
pub struct Clock {
    /// The present moment.
    pub now: Timestamp,
    /// The zone of who reads it.
    pub zone: TimeZone,
    /// How points in time are written (SL-E-11).
    pub format: TimeFormat,
}
