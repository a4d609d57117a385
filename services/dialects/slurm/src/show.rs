//! The output of commands about jobs, nodes and partitions.

mod cells;
pub mod columns;
pub mod data;
mod period;
pub mod record;
pub mod sacct;
pub mod sacctmgr;
pub mod scontrol;
pub mod sdiag;
pub mod seff;
pub mod sinfo;
pub mod sprio;
pub mod squeue;
pub mod sreport;
pub mod sshare;
pub mod sstat;
pub mod step;
pub mod strigger;
mod tres;

use crate::moment::TimeFormat;
use jiff::tz::TimeZone;
use muster_schemas::time::Timestamp;

/// The time and zone of the output: ages are counted to `now`, times are printed in the zone.
#[derive(Clone, Debug)]
pub struct Clock {
    /// The current time.
    pub now: Timestamp,
    /// The reader's zone.
    pub zone: TimeZone,
    /// How points in time are written (SL-E-11).
    pub format: TimeFormat,
}
