//! Why a ledger stops: the stream of rounds and its own log do not belong together.

use muster_bus::rounds::Position;
use muster_schemas::{ids::Sequence, subjects::ROUNDS_STREAM, time::Timestamp};

/// What a person has to do if the stream cannot be trusted.
const REMEDY: &str = "Nothing was changed. Stop all ledgers, find out which log is to continue (`muster audit verify` tells where each \
                      ends), delete the stream, and start that ledger once with `--lead-new-stream RECORD`, the last record of its \
                      log; the others follow it if their logs agree with it";

/// Why a ledger must not follow the stream of rounds, and must not lead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamFault {
    /// The stream belongs to another cluster.
    #[error(
        "the stream {stream} holds the history of cluster {found}, and this ledger's log is of cluster {own}. Give each \
         cluster NATS servers or an account of its own. Nothing was changed", stream = ROUNDS_STREAM
    )]
    AnotherCluster {
        /// The cluster of the stream.
        found: uuid::Uuid,
        /// The cluster of the log.
        own: uuid::Uuid,
    },
    /// The stream is not the one that this log was written with.
    #[error(
        "the stream {stream} was created at {found}, and record {last} of this log stands in one that was created at \
         {known}: the stream was deleted or put back, and is not taken over by itself. {remedy}", stream = ROUNDS_STREAM, remedy = REMEDY
    )]
    AnotherStream {
        /// When the stream was created.
        found: Timestamp,
        /// When the stream of this log was created.
        known: Timestamp,
        /// The last record of the log.
        last: Sequence,
    },
    /// The stream ends before a message that stood in it.
    #[error(
        "the stream {stream} ends at message {found}, and message {known} stood in it, acknowledged: the stream has lost its \
         end. {remedy}", stream = ROUNDS_STREAM, remedy = REMEDY
    )]
    LostItsEnd {
        /// The last message of the stream.
        found: Position,
        /// The message that it had.
        known: Position,
    },
    /// A message does not continue this log.
    #[error(
        "message {at} of the stream {stream}, of ledger {ledger} in epoch {epoch}, does not continue this ledger's log, \
         which ends at record {last}: {what}. One of them has another history. {remedy}", stream = ROUNDS_STREAM, remedy = REMEDY
    )]
    AnotherHistory {
        /// The message.
        at: Position,
        /// Who appended it.
        ledger: String,
        /// In which epoch.
        epoch: u64,
        /// The last record of the log.
        last: Sequence,
        /// The contradiction.
        what: String,
    },
    /// A message is not one of a ledger, or is damaged.
    #[error("message {at} of the stream {stream} cannot be used: {why}. {remedy}", stream = ROUNDS_STREAM, remedy = REMEDY)]
    Damaged {
        /// The message.
        at: Position,
        /// The fault.
        why: String,
    },
    /// A newer muster writes the stream.
    #[error(
        "ledger {ledger} writes at feature level {found}, and this one knows {}: upgrade this one; until then it does not follow",
        muster_schemas::codec::FEATURE_LEVEL
    )]
    Newer {
        /// Who writes.
        ledger: String,
        /// Its level.
        found: u32,
    },
    /// The log on disk cannot be used.
    #[error("the log cannot be used: {0}")]
    Log(String),
}
