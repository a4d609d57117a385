//! How jobs were handled: the flags of `sacct -F`.

use muster_schemas::views::RunView;
use std::collections::BTreeSet;

/// How a job was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobFlag {
    /// It was started when it was submitted: muster starts no job before it has planned.
    SchedSubmit,
    /// It was started in its turn.
    SchedMain,
    /// It was started ahead of others.
    SchedBackfill,
    /// Its nodes have reported its start.
    StartReceived,
}

impl JobFlag {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 4] = [Self::SchedSubmit, Self::SchedMain, Self::SchedBackfill, Self::StartReceived];

    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::SchedSubmit => "SchedSubmit",
            Self::SchedMain => "SchedMain",
            Self::SchedBackfill => "SchedBackfill",
            Self::StartReceived => "StartReceived",
        }
    }

    /// Its word in data for programs.
    pub const fn in_data(self) -> &'static str {
        match self {
            Self::SchedSubmit => "STARTED_ON_SUBMIT",
            Self::SchedMain => "STARTED_ON_SCHEDULE",
            Self::SchedBackfill => "STARTED_ON_BACKFILL",
            Self::StartReceived => "START_RECEIVED",
        }
    }

    /// The flag of a word in any case; `None` if there is none.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flag| flag.word().eq_ignore_ascii_case(word))
    }

    /// The flags of an attempt; none before a job has had one.
    pub fn of(run: Option<&RunView>) -> BTreeSet<Self> {
        let Some(run) = run else { return BTreeSet::new() };
        let by = if run.backfilled { Self::SchedBackfill } else { Self::SchedMain };
        [by].into_iter().chain(run.started.map(|_| Self::StartReceived)).collect()
    }
}
