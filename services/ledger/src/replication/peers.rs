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

/// Nobody can be asked.
#[derive(Clone, Copy, Debug)]
pub struct NoPeers;

impl Peers for NoPeers {
    fn page(&mut self, ledger: &str, _from: Sequence) -> Result<Bytes, String> {
        Err(format!("ledger {ledger} cannot be asked"))
    }
}
