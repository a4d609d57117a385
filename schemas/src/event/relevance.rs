//! What events mean to the parts of muster: the words of the [table](super::table).

/// What an event changes for planners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanEffect {
    /// Nothing can start that could not start before, and no reason for waiting becomes untrue.
    Never,
    /// It may let jobs start, or make reasons untrue: of the job that it names, of those that depend on it, or of those that
    /// get what its run had.
    Jobs,
    /// So may it for any job, because it changes the nodes, queues, licences or reservations that planners know.
    Cluster,
    /// So may it for any job, because it opens or shuts the gates of jobs that it does not name.
    Gates,
    /// It changes the rules that planners plan by: they begin anew.
    Rules,
}

impl PlanEffect {
    /// Whether the event can let something start that could not start before, or make a reason untrue.
    pub fn can_change_plan(self) -> bool {
        self != Self::Never
    }
}

/// What becomes of an event when a log is replayed under another policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// It comes from outside, and happens again whatever the state is.
    Happens,
    /// It came of a command, or of a node that was lost: the same is asked for again, and may come to something else.
    Asked,
    /// It follows from what happens in the replay, or replays do without it.
    Left,
}

/// A part of muster that does something about some kinds of events and nothing about the others. A test in each compares what it does
/// with what the table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concern {
    /// Orders to nodes follow from it (`services/domain/src/orders.rs`).
    Orders,
    /// People may want to be notified of it (`services/domain/src/notify.rs`).
    Notices,
    /// The books of usage count it (`services/accounting/src/books.rs`).
    Usage,
    /// The statistics of the scheduler count it (`services/gateway/src/statistics.rs`).
    Statistics,
    /// It changes what is shown of the runs of a job (`services/gateway/src/views.rs`).
    Runs,
    /// It changes what is shown of the steps of a job (`services/gateway/src/steps.rs`).
    Steps,
    /// It can be that somebody cancels a job or a component (`services/gateway/src/views/components.rs`).
    Cancels,
    /// A job may have started because of it (`services/planner/src/explain/start.rs`).
    Starts,
    /// It tells when a job came, started or ended, for comparison with a replay (`services/planner/src/whatif/history.rs`).
    Outcomes,
    /// Its record has all of a job (`services/ledger/src/descriptions.rs`).
    Descriptions,
    /// It gives a name to a node or to the cluster (`services/ledger/src/names.rs`).
    Names,
}
