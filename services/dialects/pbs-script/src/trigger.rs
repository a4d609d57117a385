//! Why a cycle runs (PBS-C-01).

use serde::{Deserialize, Serialize};

/// The command that a scheduler is called with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub enum Command {
    /// An error.
    #[serde(rename = "SCH_ERROR")]
    Error,
    /// Nothing.
    #[serde(rename = "SCH_SCHEDULE_NULL")]
    Null,
    /// A job entered an execution queue as queued, or became queued there.
    #[serde(rename = "SCH_SCHEDULE_NEW")]
    New,
    /// A running job ended, or a queued one was deleted.
    #[serde(rename = "SCH_SCHEDULE_TERM")]
    Term,
    /// `schedule_iteration` seconds passed since the start of the previous cycle.
    #[serde(rename = "SCH_SCHEDULE_TIME")]
    Time,
    /// The previous cycle started exactly one job.
    #[serde(rename = "SCH_SCHEDULE_RECYC")]
    Recyc,
    /// `scheduling` was set to true.
    #[serde(rename = "SCH_SCHEDULE_CMD")]
    Cmd,
    /// Read the policy again.
    #[serde(rename = "SCH_CONFIGURE")]
    Configure,
    /// End.
    #[serde(rename = "SCH_QUIT")]
    Quit,
    /// A rule set.
    #[serde(rename = "SCH_RULESET")]
    Ruleset,
    /// The first cycle after the server came up.
    #[serde(rename = "SCH_SCHEDULE_FIRST")]
    First,
}

/// The commands that start cycles. A cycle with several has the first of these as its reason (PBS-C-06).
pub const IN_ORDER: [Command; 6] =
    [Command::First, Command::Cmd, Command::Term, Command::New, Command::Time, Command::Recyc];

impl Command {
    /// The name as programs get it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "SCH_ERROR",
            Self::Null => "SCH_SCHEDULE_NULL",
            Self::New => "SCH_SCHEDULE_NEW",
            Self::Term => "SCH_SCHEDULE_TERM",
            Self::Time => "SCH_SCHEDULE_TIME",
            Self::Recyc => "SCH_SCHEDULE_RECYC",
            Self::Cmd => "SCH_SCHEDULE_CMD",
            Self::Configure => "SCH_CONFIGURE",
            Self::Quit => "SCH_QUIT",
            Self::Ruleset => "SCH_RULESET",
            Self::First => "SCH_SCHEDULE_FIRST",
        }
    }

    /// The number as programs get it.
    pub const fn number(self) -> i32 {
        match self {
            Self::Error => -1,
            Self::Null => 0,
            Self::New => 1,
            Self::Term => 2,
            Self::Time => 3,
            Self::Recyc => 4,
            Self::Cmd => 5,
            Self::Configure => 7,
            Self::Quit => 8,
            Self::Ruleset => 9,
            Self::First => 10,
        }
    }
}
