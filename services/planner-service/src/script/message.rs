//! What the thread of a scheduling program tells the planner during a cycle.

use muster_pbs_plan::state_file::{JobState, QueueState};
use muster_pbs_script::{
    action::{Action, Refusal},
    scheduler::Report,
};
use muster_schemas::policy::PolicySource;
use std::sync::mpsc::SyncSender;

/// A message from the thread.
pub(crate) enum FromScript {
    /// The program asks for something.
    Asked(Asked),
    /// The cycle is over; there was none if none was due.
    Done {
        /// What it left.
        report: Option<Box<Report>>,
        /// The files that the program is made of.
        sources: Vec<PolicySource>,
        /// When the next one is due, in seconds since 1970; `None` unless something happens before.
        due: Option<i64>,
    },
}

/// What the program asks for. The program waits for the answer.
pub(crate) struct Asked {
    /// The action, with jobs, queues and nodes as the program was shown them.
    pub action: Action,
    /// Nodes that a start which names none does not get: they are reserved.
    pub avoid: Vec<String>,
    /// Takes what became of it, or the refusal of planner or ledger.
    pub answer: SyncSender<Result<Done, Refusal>>,
}

/// What an action did.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The names of the nodes on which a job was started.
    pub nodes: Vec<String>,
    /// Those of them on which no core is free any more.
    pub full: Vec<String>,
    /// What it was about, as it is now.
    pub seen: Seen,
}

/// Something as it is after an action.
#[derive(Debug, Default)]
pub(crate) enum Seen {
    /// What was there before is true.
    #[default]
    Same,
    /// The job.
    Job(Box<JobState>),
    /// The job is no more.
    NoJob,
    /// The queue.
    Queue(Box<QueueState>),
}
