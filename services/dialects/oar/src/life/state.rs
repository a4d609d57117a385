//! The states of a job, and the moves between them.

use crate::options::notify::Tag;
use std::fmt;

/// The state of a job (OAR-J-01).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the state of its name")]
pub enum State {
    Waiting,
    Hold,
    ToLaunch,
    ToError,
    ToAckReservation,
    Launching,
    Running,
    Suspended,
    Resuming,
    Finishing,
    Terminated,
    Error,
}

/// A move that no job makes. The state stays as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedMove {
    /// The state.
    pub from: State,
    /// The state that it was to have.
    pub to: State,
}

impl fmt::Display for RefusedMove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a job does not go from {} to {}", self.from, self.to)
    }
}

impl std::error::Error for RefusedMove {}

impl State {
    /// All states.
    pub const ALL: [Self; 12] = [
        Self::Waiting,
        Self::Hold,
        Self::ToLaunch,
        Self::ToError,
        Self::ToAckReservation,
        Self::Launching,
        Self::Running,
        Self::Suspended,
        Self::Resuming,
        Self::Finishing,
        Self::Terminated,
        Self::Error,
    ];

    /// The word for it, as front ends print it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Hold => "Hold",
            Self::ToLaunch => "toLaunch",
            Self::ToError => "toError",
            Self::ToAckReservation => "toAckReservation",
            Self::Launching => "Launching",
            Self::Running => "Running",
            Self::Suspended => "Suspended",
            Self::Resuming => "Resuming",
            Self::Finishing => "Finishing",
            Self::Terminated => "Terminated",
            Self::Error => "Error",
        }
    }

    /// The letter for it in tables (OAR-C-08).
    pub const fn letter(self) -> char {
        match self {
            Self::Waiting | Self::ToAckReservation => 'W',
            Self::Hold => 'H',
            Self::ToLaunch | Self::Launching => 'L',
            Self::ToError | Self::Error => 'E',
            Self::Running => 'R',
            Self::Suspended | Self::Resuming => 'S',
            Self::Finishing => 'F',
            Self::Terminated => 'T',
        }
    }

    /// The state of a word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Whether nothing changes it any more (OAR-J-03).
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Terminated | Self::Error)
    }

    /// The states that can follow (OAR-J-02).
    pub const fn next(self) -> &'static [Self] {
        match self {
            Self::Waiting => &[Self::Hold, Self::ToLaunch, Self::ToAckReservation, Self::ToError, Self::Error],
            Self::Hold | Self::ToAckReservation => &[Self::Waiting, Self::Error],
            Self::ToError => &[Self::Error],
            Self::ToLaunch => &[Self::Launching, Self::Error],
            Self::Launching => &[Self::Running, Self::Finishing, Self::Error],
            Self::Running => &[Self::Suspended, Self::Finishing],
            Self::Suspended => &[Self::Resuming, Self::Finishing],
            Self::Resuming => &[Self::Running, Self::Suspended, Self::Finishing],
            Self::Finishing => &[Self::Terminated, Self::Error],
            Self::Terminated | Self::Error => &[],
        }
    }

    /// The state after a move.
    ///
    /// # Errors
    /// A move that no job makes.
    pub fn moved(self, to: Self) -> Result<Self, RefusedMove> {
        if self.next().contains(&to) { Ok(to) } else { Err(RefusedMove { from: self, to }) }
    }

    /// What a user is told about a move (OAR-N-04). A job that runs again after a suspension is not launched again.
    pub const fn tag(self, to: Self) -> Option<Tag> {
        match (self, to) {
            (Self::Launching, Self::Running) => Some(Tag::Running),
            (_, Self::Terminated) => Some(Tag::End),
            (_, Self::Error) => Some(Tag::Error),
            (_, Self::Suspended) => Some(Tag::Suspended),
            (_, Self::Resuming) => Some(Tag::Resuming),
            _ => None,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
