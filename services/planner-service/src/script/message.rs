//! What the thread of a scheduling program tells the planner during a cycle.

use muster_pbs_script::{action::Refusal, scheduler::Report};
use std::sync::mpsc::SyncSender;

/// A message from the thread.
pub(crate) enum FromScript {
    /// The program asks for something.
    Asked(Asked),
    /// The cycle is over; there was none if none was due.
    Done {
        /// What it left.
        report: Option<Box<Report>>,
        /// When the next one is due, in seconds since 1970; `None` unless something happens before.
        due: Option<i64>,
    },
}

/// A start that the program asks for. The program waits for the answer.
pub(crate) struct Asked {
    /// The job, as the program was shown it.
    pub job: String,
    /// Where; anywhere if there is none.
    pub hosts: Vec<String>,
    /// Takes the names of the nodes, or the refusal of planner or ledger.
    pub answer: SyncSender<Result<Vec<String>, Refusal>>,
}
