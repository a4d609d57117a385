//! Events in the log.

use super::{Actor, Event, TraceContext};
use crate::{
    ids::{CommandId, Sequence},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One entry of the log, without the hash of the previous entry, which precedes its bytes on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its place in the log.
    pub sequence: Sequence,
    /// When the ledger decided it; never earlier than the previous record.
    pub time: Timestamp,
    /// The actor.
    pub actor: Arc<Actor>,
    /// The command that led to it.
    pub command: CommandId,
    /// The trace that it belongs to.
    pub trace: TraceContext,
    /// The event.
    pub event: Event,
    /// The epoch of the ledger that decided it; 0 while the cluster has only one ledger.
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
