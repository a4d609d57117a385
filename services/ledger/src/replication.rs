//! Several ledgers that keep one history: one leads and decides, the others follow.
//!
//! They share a stream of rounds ([`muster_bus::rounds`]), in which each message follows a known one. A reign
//! begins with a record that says who leads, appended at the end of the stream after everything before it was applied. A
//! round is appended to the stream, then written to the leader's own log, and only then answered. So every ledger's log
//! is a prefix of the stream, and nothing in it is ever taken back because another ledger leads.
//!
//! Decision 50 has the rules, and what they rest on.

mod copies;
mod fault;
mod lease;
mod peers;
mod reign;
mod standby;

pub(crate) use copies::Copies;
pub use fault::StreamFault;
pub(crate) use lease::Lease;
pub use peers::Peers;
pub(crate) use reign::{InFlight, Reign, Told};
pub(crate) use standby::{Standby, Step};

use std::time::Duration;

/// How long an append proves that a ledger leads, from the moment at which it was begun.
pub(crate) const LEASE: Duration = Duration::from_secs(1);
/// Clocks of two hosts do not run at the same rate: a leader stops by this much early, and others wait as much longer.
pub(crate) const MARGIN: Duration = Duration::from_millis(200);
/// An idle leader proves this often that it leads.
pub(crate) const RENEW_EVERY: Duration = Duration::from_millis(250);
/// An append whose fate is unknown is tried again after this pause.
pub(crate) const TRY_AGAIN_AFTER: Duration = Duration::from_millis(20);
/// A leader whose append has an unknown fate for this long steps down.
pub(crate) const GIVE_UP_AFTER: Duration = Duration::from_secs(30);
/// A leader whose answers wait for a ledger that follows looks after its other duties this often meanwhile.
pub(crate) const WAIT_FOR_COPY: Duration = Duration::from_millis(50);
/// The end of a reign is appended this often at most, if its fate is unknown: the others find out by themselves.
pub(crate) const YIELD_TRIES: usize = 3;
/// Ledgers that wait for the same lease to end do not claim at the same moment: their names spread them over this time.
pub(crate) const SPREAD: Duration = Duration::from_millis(300);

/// A round of a leader takes no more commands after this many bytes of records.
pub(crate) const ROUND_BYTES: usize = 1 << 20;
/// The records of one command may have this many bytes, so that a round, which is one message, never has more than
/// [`muster_bus::rounds::MAX_ROUND_BYTES`].
pub(crate) const COMMAND_BYTES: usize = muster_bus::rounds::MAX_ROUND_BYTES - ROUND_BYTES;
