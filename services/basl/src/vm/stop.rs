//! Why a program stops before its end.

/// What ends a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Something that cannot be done.
    Fault(String),
    /// The deadline of the cycle.
    TimeOver,
    /// `exit`.
    Exit(i64),
}

impl Stop {
    pub(crate) fn fault(message: impl Into<String>) -> Self {
        Self::Fault(message.into())
    }
}

impl From<&str> for Stop {
    fn from(message: &str) -> Self {
        Self::fault(message)
    }
}
