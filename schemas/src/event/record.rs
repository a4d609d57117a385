//! Events in the log.

use super::{Actor, Event, TraceContext};
use crate::{
    ids::{CommandId, Sequence},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One entry of the log, without the hash of the entry before (which is in front of its bytes on disk).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its place in the log.
    pub sequence: Sequence,
    /// When the ledger decided it; never earlier than the record before.
    pub time: Timestamp,
    /// The actor.
    pub actor: Arc<Actor>,
    /// The command that it follows from.
    pub command: CommandId,
    /// The trace that it belongs to.
    pub trace: TraceContext,
    /// The event.
    pub event: Event,
    /// Which reign of a ledger it was decided in: 0 as long as a cluster has one ledger only.
    pub epoch: u64,
}

/// The records of one group commit: the unit that the event stream carries. Their sequences are contiguous.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// At least one.
    pub records: Vec<Record>,
}

impl Commit {
    /// The first sequence, or 0 if there is none.
    pub fn first(&self) -> Sequence {
        self.records.first().map_or(Sequence(0), |record| record.sequence)
    }

    /// The last sequence, or 0 if there is none.
    pub fn last(&self) -> Sequence {
        self.records.last().map_or(Sequence(0), |record| record.sequence)
    }
}
