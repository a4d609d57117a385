//! The states of a job.

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
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
