//! Other ledgers, as a standby asks them for what the stream no longer has.

use bytes::Bytes;
use muster_schemas::ids::Sequence;

/// Reads the logs of other ledgers. The calls block.
pub trait Peers: Send {
    /// A page of a ledger's log from a sequence on, as that ledger's `Query::Rounds` answers it; it is empty if the log
    /// ends before.
    ///
    /// # Errors
    /// The ledger does not answer; the text says why, for people.
    fn page(&mut self, ledger: &str, from: Sequence) -> Result<Bytes, String>;
}
