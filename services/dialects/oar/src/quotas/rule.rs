//! Rules and their limits.

use muster_schemas::quota::QuotaAmount;
use std::fmt;

/// What a rule says about one attribute of jobs (OAR-Q-03).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// Jobs with this value.
    Is(String),
    /// `/`: jobs of each value, each with a counter of its own.
    Each,
    /// `*`: all jobs together.
    Any,
}

impl Field {
    /// The field of a word.
    pub fn of(word: &str) -> Self {
        match word {
            "/" => Self::Each,
            "*" => Self::Any,
            word => Self::Is(word.to_owned()),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Is(value) => value,
            Self::Each => "/",
            Self::Any => "*",
        })
    }
}

/// The limits of a rule; `None` for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The resources held at a time.
    pub resources: Option<QuotaAmount>,
    /// The jobs at a time.
    pub jobs: Option<QuotaAmount>,
    /// The sum of resources times walltime of the jobs at a time, in resource-seconds.
    pub resource_seconds: Option<QuotaAmount>,
}

/// Whose jobs a rule is about: queue, project, type and user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern {
    /// The queue.
    pub queue: Field,
    /// The project.
    pub project: Field,
    /// One of the counted types; never [`Field::Each`].
    pub kind: Field,
    /// The user.
    pub user: Field,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{},{}", self.queue, self.project, self.kind, self.user)
    }
}
