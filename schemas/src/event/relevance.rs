//! What events mean to the parts of muster: the vocabulary of the [table](super::table).

/// What an event changes for planners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanEffect {
    /// It lets no job start that could not start before, and makes no wait reason untrue.
    Never,
    /// It may let jobs start or make wait reasons untrue: for the job that it names, its dependants, and jobs that get
    /// the resources of its run.
    Jobs,
    /// The same for any job, because it changes the nodes, queues, licences or reservations that planners know.
    Cluster,
    /// The same for any job, because it opens or closes gates of jobs that it does not name.
    Gates,
    /// It changes the rules of planning: planners start over.
    Rules,
}

impl PlanEffect {
    /// Whether the event can let a job start that could not start before, or make a wait reason untrue.
    pub fn can_change_plan(self) -> bool {
        self != Self::Never
    }
}

/// How a replay of the log under another policy treats an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// It comes from outside, and happens again in any state.
    Happens,
    /// It followed from a command or a lost node. The replay asks for the same again, and the result may differ.
    Asked,
    /// The replay produces it by itself, or does not need it.
    Left,
}

/// A part of muster that acts on some kinds of events. A test in each part compares what it does with the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concern {
    /// Orders to nodes follow from it (`services/domain/src/orders.rs`).
    Orders,
    /// People may want to be notified of it (`services/domain/src/notify.rs`).
    Notices,
    /// Usage accounting counts it (`services/accounting/src/books.rs`).
    Usage,
    /// The statistics of the scheduler count it (`services/gateway/src/statistics.rs`).
    Statistics,
    /// It changes how the runs of a job are shown (`services/gateway/src/views.rs`).
    Runs,
    /// It changes how the steps of a job are shown (`services/gateway/src/steps.rs`).
    Steps,
    /// It can mean that a job or component was cancelled (`services/gateway/src/views/components.rs`).
    Cancels,
    /// A job may have started because of it (`services/planner/src/explain/start.rs`).
    Starts,
    /// It tells when a job arrived, started or ended, for comparison with a replay
    /// (`services/planner/src/whatif/history.rs`).
    Outcomes,
    /// Its record has the full specification of a job (`services/ledger/src/descriptions.rs`).
    Descriptions,
    /// It gives a name to a node or to the cluster (`services/ledger/src/names.rs`).
    Names,
}
