//! A ledger that leads, towards the stream.

use super::{Copies, GIVE_UP_AFTER, Lease, RENEW_EVERY, WAIT_FOR_COPY, YIELD_TRIES};
use crate::log::{Head, Place, Sealed};
use bytes::Bytes;
use muster_bus::rounds::{Outcome, Position, RoundHeader, RoundKind, RoundMessage, Rounds};
use muster_schemas::{codec, time::Timestamp};
use std::time::Instant;

/// Who appends to the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Author {
    pub(crate) cluster: [u8; 16],
    pub(crate) ledger: String,
    pub(crate) epoch: u64,
}

impl Author {
    /// A message that continues a log at `before`, and brings it to `after`.
    pub(crate) fn message(&self, kind: RoundKind, before: Head, after: Head, body: Vec<u8>) -> RoundMessage {
        let header = RoundHeader {
            cluster: self.cluster,
            ledger: self.ledger.clone(),
            epoch: self.epoch,
            kind,
            first: before.sequence.next(),
            last: after.sequence,
            before: before.hash,
            after: after.hash,
            feature_level: codec::FEATURE_LEVEL,
        };
        RoundMessage { header, body: Bytes::from(body) }
    }
}

/// A message whose fate is not known yet, and what follows if it stands.
pub(crate) struct InFlight<T> {
    pub(crate) message: RoundMessage,
    /// The records for the log; nothing if it has no content.
    pub(crate) sealed: Option<Sealed>,
    /// The news for others.
    pub(crate) told: T,
    /// When it was first tried.
    pub(crate) tried: Instant,
}

impl<T> InFlight<T> {
    /// Whether its fate has been unknown for too long.
    pub(crate) fn is_hopeless(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.tried) >= GIVE_UP_AFTER
    }
}

/// What became of a message.
#[allow(clippy::large_enum_variant, reason = "there is one at a time, and it is taken apart at once")]
pub(crate) enum Told<T> {
    /// It stands: what is to be written, and told.
    Stands(Option<Sealed>, T),
    /// Another ledger leads.
    Beaten,
    /// Nobody knows.
    Unknown(InFlight<T>, String),
}

/// The reign of this ledger.
pub(crate) struct Reign {
    rounds: Box<dyn Rounds>,
    author: Author,
    stream_created: Timestamp,
    position: Position,
    lease: Lease,
    proven: Instant,
    /// What ledgers that follow have, if answers wait for one of them.
    copies: Option<Copies>,
}

impl Reign {
    /// A reign whose claim was first tried at `tried`, and stands at `position`.
    pub(crate) fn new(
        rounds: Box<dyn Rounds>,
        author: Author,
        stream_created: Timestamp,
        position: Position,
        tried: Instant,
    ) -> Self {
        let lease = Lease::default();
        lease.renew(tried);
        Self { rounds, author, stream_created, position, lease, proven: tried, copies: None }
    }

    /// Lets answers wait until a ledger that follows has their round.
    pub(crate) fn with_copies(self, copies: Option<Copies>) -> Self {
        Self { copies, ..self }
    }

    /// Whether what stands at this place may be told. If that has to wait for a ledger that follows, it does so for a short
    /// time.
    pub(crate) fn is_copied(&self, place: Place) -> bool {
        self.copies.as_ref().is_none_or(|copies| copies.wait_for(place, WAIT_FOR_COPY))
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.author.epoch
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// When the next proof is due that this ledger leads.
    pub(crate) fn next_proof(&self) -> Instant {
        self.proven + RENEW_EVERY
    }

    /// A message after `head`: a commit, or, without one, the proof that this ledger leads.
    pub(crate) fn prepare<T>(
        &self,
        head: Head,
        commit: Option<(Sealed, Vec<u8>)>,
        told: T,
        now: Instant,
    ) -> InFlight<T> {
        let (sealed, message) = match commit {
            Some((sealed, body)) => {
                let message = self.author.message(RoundKind::Round, head, sealed.head(), body);
                (Some(sealed), message)
            }
            None => (None, self.author.message(RoundKind::Renewal, head, head, Vec::new())),
        };
        InFlight { message, sealed, told, tried: now }
    }

    /// Appends a message, or tries to find out whether it stands, which is the same.
    pub(crate) fn send<T>(&mut self, in_flight: InFlight<T>) -> Told<T> {
        match self.rounds.append(self.position, &in_flight.message) {
            Outcome::Stands(position) => {
                self.position = position;
                self.proven = in_flight.tried;
                self.lease.renew(in_flight.tried);
                Told::Stands(in_flight.sealed, in_flight.told)
            }
            Outcome::Beaten { .. } => {
                self.lease.drop_it();
                Told::Beaten
            }
            Outcome::Unknown(why) => {
                self.lease.drop_it();
                Told::Unknown(in_flight, why)
            }
        }
    }

    /// The place of the message that was appended last.
    pub(crate) fn place(&self) -> Place {
        Place { created: self.stream_created, position: self.position }
    }

    /// Ends the reign, so that others need not wait for the lease to end: the ledger of a name leads next, or any. If
    /// that fails, they wait.
    pub(crate) fn yield_now(&mut self, head: Head, to: Option<&str>) {
        self.lease.drop_it();
        let body = to.map(|name| name.as_bytes().to_vec()).unwrap_or_default();
        let message = self.author.message(RoundKind::Yield, head, head, body);
        for _ in 0..YIELD_TRIES {
            match self.rounds.append(self.position, &message) {
                Outcome::Stands(position) => {
                    self.position = position;
                    return;
                }
                Outcome::Beaten { .. } => return,
                Outcome::Unknown(_) => {}
            }
        }
    }

    /// The stream, once the reign is over.
    pub(crate) fn end(self) -> Box<dyn Rounds> {
        self.lease.drop_it();
        self.rounds
    }
}
