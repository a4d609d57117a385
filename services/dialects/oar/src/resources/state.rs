//! States of resources, and what they mean for jobs.

use std::fmt;

/// The state of a resource (OAR-R-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It takes jobs.
    Alive,
    /// It is away on purpose: switched off, in maintenance, or not yet started.
    Absent,
    /// It gave a sign that something is wrong.
    Suspected,
    /// It is out of order for good.
    Dead,
}

impl State {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Alive, Self::Absent, Self::Suspected, Self::Dead];

    /// The word for it in commands and tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Alive => "Alive",
            Self::Absent => "Absent",
            Self::Suspected => "Suspected",
            Self::Dead => "Dead",
        }
    }

    /// The state of a word, as commands spell it.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Whether setting a resource to this state ends the jobs on it (OAR-R-19). Jobs that only hold their nodes, of the
    /// types cosystem and noop, continue.
    pub const fn ends_jobs(self) -> bool {
        matches!(self, Self::Absent | Self::Dead)
    }

    /// The word that tables show: an absent resource that can be woken stands by.
    pub const fn shown(self, available_upto: i64, now: i64) -> &'static str {
        match self {
            Self::Absent if available_upto >= now => "StandBy",
            state => state.word(),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
