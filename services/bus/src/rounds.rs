//! The stream of rounds: the ordering and fencing log of several ledgers that keep one history.
//!
//! Every message is appended with the sequence of the message before it. So of two writers at most one continues: what a
//! stale writer appends is refused for ever. The stream orders and fences, it does not remember: each ledger keeps its
//! own copy of the history.
//!
//! The calls block. Only the thread of a ledger makes them.

use bytes::Bytes;
use muster_schemas::{ids::Sequence, time::Timestamp};
use std::{fmt, time::Duration};

/// The largest body of a message, in bytes. The records of a round are at most this large; the remembered answers come
/// on top, so a server has to carry twice as much.
pub const MAX_ROUND_BYTES: usize = 4 << 20;

/// The sequence in the stream of a message; 0 is the place before the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl Position {
    /// The place of the message that follows.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundKind {
    /// A ledger leads from here on. Its one record says so.
    Claim,
    /// Records and the answers that retries get.
    Round,
    /// The leader is alive and has nothing to write; it has no records, and may vanish from the stream after a while.
    Renewal,
    /// The leader leads no longer, and others need not wait for its lease to end; it has no records. Its body is the name
    /// of the ledger that leads next, or empty if any may.
    Yield,
}

impl RoundKind {
    /// Its name in the header of a message.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Round => "round",
            Self::Renewal => "renewal",
            Self::Yield => "yield",
        }
    }

    /// The kind with a name.
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Claim, Self::Round, Self::Renewal, Self::Yield].into_iter().find(|kind| kind.name() == name)
    }
}

/// What everybody who follows the stream has to know of a message before it looks into the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundHeader {
    /// The cluster whose history it is.
    pub cluster: [u8; 16],
    /// The name of the ledger that appended it.
    pub ledger: String,
    /// The epoch of that ledger's reign, 1 or more.
    pub epoch: u64,
    /// What the message says.
    pub kind: RoundKind,
    /// The sequence of its first record; without records, of the record that comes next.
    pub first: Sequence,
    /// The sequence of its last record; without records, of the record before.
    pub last: Sequence,
    /// The hash of the record before the first.
    pub before: [u8; 32],
    /// The hash of the last record; without records, of the record before.
    pub after: [u8; 32],
    /// The feature level of the records: who has a lower one cannot follow.
    pub feature_level: u32,
}

impl RoundHeader {
    /// The id by which the stream recognises the same message sent again: the same for every try at one place, another
    /// at any other place, so that one renewal is never taken for the one before.
    pub fn id(&self, after: Position) -> String {
        let [a, b, c, d, ..] = self.after;
        let hash = u32::from_be_bytes([a, b, c, d]);
        format!("{}-{}-{hash:08x}-{after}", self.epoch, self.first)
    }

    /// Whether it has records.
    pub const fn has_records(&self) -> bool {
        self.last.0 >= self.first.0
    }
}

/// A message of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundMessage {
    /// What it is.
    pub header: RoundHeader,
    /// Records and answers in a form that only ledgers know; empty if there are none.
    pub body: Bytes,
}

/// What became of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It stands in the stream, at this place, durable on most servers. Also if it already stood there.
    Stands(Position),
    /// Another message stands in its place, or the stream ends elsewhere; it will never stand.
    Beaten {
        /// The end of the stream as the server named it. Messages before it may not be durable yet.
        last: Position,
    },
    /// Nobody knows; only the same append again tells. The text says why, for people.
    Unknown(String),
}

/// What follows a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next message that the stream still has. Between the place asked for and its own there may be places of
    /// vanished renewals.
    Message(Position, RoundMessage),
    /// Nothing within the time given.
    Nothing,
    /// The stream begins later: messages with records may be missing between.
    Gone {
        /// The place of the first message that it still has.
        first: Position,
    },
    /// The message at this place is none of a ledger; the text says what is wrong with it.
    Strange(Position, String),
    /// The stream cannot be read; the text says why.
    Unreachable(String),
}

/// What a stream says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamInfo {
    /// When it was created. Another time means another stream, even under the same name.
    pub created: Timestamp,
    /// The place of its first message; if it has none, the one after the last.
    pub first: Position,
    /// The place of its last message, also if that has vanished; 0 if it never had one.
    pub last: Position,
}

/// The stream of rounds. The calls block the thread for as long as they take; none takes longer than a few seconds.
pub trait Rounds: Send {
    /// Appends a message after the one at `after`, which has to be the last one.
    fn append(&mut self, after: Position, message: &RoundMessage) -> Outcome;

    /// The first message behind `after`, for which it waits no longer than `wait`. What it gives may be older than what others
    /// have seen already, but never something that was not appended.
    fn next(&mut self, after: Position, wait: Duration) -> Next;

    /// What the stream says about itself. It may be older than what others have seen already.
    ///
    /// # Errors
    /// It cannot be asked; the text says why, for people.
    fn info(&mut self) -> Result<StreamInfo, String>;

    /// The servers that keep the stream, if their places can be chosen.
    fn keepers(&self) -> Option<Box<dyn Keepers>> {
        None
    }
}

/// The servers that keep the stream of rounds. The calls block as those of [`Rounds`] do, and disturb none of them.
pub trait Keepers: Send {
    /// Asks that another server leads the stream, if the one of this name does: the loss of its host then costs either the
    /// ledger that leads or the server that leads the stream, never both. Returns the name of the one that is to lead.
    ///
    /// # Errors
    /// They cannot be asked, or do not do it; the text says why, for people.
    fn lead_elsewhere(&mut self, than: &str) -> Result<Option<String>, String>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: RoundKind, first: u64, last: u64) -> RoundHeader {
        let (first, last) = (Sequence(first), Sequence(last));
        let (before, after) = ([1; 32], [2; 32]);
        RoundHeader {
            cluster: [7; 16],
            ledger: "a".into(),
            epoch: 3,
            kind,
            first,
            last,
            before,
            after,
            feature_level: 8,
        }
    }

    #[test]
    fn an_id_tells_messages_and_places_apart() {
        let round = header(RoundKind::Round, 8, 9);
        assert_eq!(round.id(Position(41)), "3-8-02020202-41");
        assert_ne!(round.id(Position(41)), round.id(Position(42)));
        let other = RoundHeader { after: [5; 32], ..round.clone() };
        assert_ne!(round.id(Position(41)), other.id(Position(41)));
        assert!(round.has_records() && !header(RoundKind::Renewal, 10, 9).has_records());
    }

    #[test]
    fn every_kind_has_a_name() {
        for kind in [RoundKind::Claim, RoundKind::Round, RoundKind::Renewal, RoundKind::Yield] {
            assert_eq!(RoundKind::of_name(kind.name()), Some(kind));
        }
        assert_eq!(RoundKind::of_name("rumour"), None);
    }
}
