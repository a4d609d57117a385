//! The limit on the time of a pass (OAR-G-09). The planner has no clock, so it asks whether to continue.

use std::fmt;

/// How long a pass may look at jobs.
#[derive(Clone, Copy, Default)]
pub enum PassLimit<'l> {
    /// As long as it takes.
    #[default]
    Endless,
    /// As long as this says so; it is asked every few jobs.
    While(&'l dyn Fn() -> bool),
    /// For this many looks: so a pass is repeated that was cut short after as many.
    Looks(u64),
}

impl fmt::Debug for PassLimit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endless => f.write_str("Endless"),
            Self::While(_) => f.write_str("While"),
            Self::Looks(looks) => write!(f, "Looks({looks})"),
        }
    }
}
