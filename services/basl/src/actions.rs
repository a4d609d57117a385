//! What a program decides, and who carries it out.

/// An action on a job (PBS-X-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start it, and wait until it runs. Parameter: hosts.
    SyncRun,
    /// Start it. Parameter: hosts.
    AsyncRun,
    /// Delete it. Parameter: `deldelay=SECONDS`.
    Delete,
    /// Stop it and put it back into its queue.
    Rerun,
    /// Hold it. Parameter: the types of the hold, of `u`, `o` and `s`.
    Hold,
    /// Release it. Parameter: as for `Hold`.
    Release,
    /// Send it a signal. Parameter: the signal's name.
    Signal,
    /// Change an attribute. Parameter: `attribute=value`.
    ModifyAttribute,
    /// Change a requested resource. Parameter: `resource=value`.
    ModifyResource,
}

impl Action {
    /// The action with a number, from `SYNCRUN` on.
    pub(crate) fn of_number(number: i64) -> Option<Self> {
        const ALL: [Action; 9] = [
            Action::SyncRun,
            Action::AsyncRun,
            Action::Delete,
            Action::Rerun,
            Action::Hold,
            Action::Release,
            Action::Signal,
            Action::ModifyAttribute,
            Action::ModifyResource,
        ];
        usize::try_from(number).ok().and_then(|number| ALL.get(number)).copied()
    }

    /// Whether it starts a job.
    pub const fn is_start(self) -> bool {
        matches!(self, Self::SyncRun | Self::AsyncRun)
    }
}

/// What came of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was refused; the program continues.
    Refused,
    /// It was done. A started job is on the hosts that the parameter names.
    Done,
    /// A job was started on these nodes, places in the snapshot's list.
    StartedOn(Vec<usize>),
}

/// Carries out what a program decides.
pub trait Actions {
    /// An action on a job, a place in the snapshot's list. The parameter is what the program says, empty for `NULLSTR`.
    /// It can be any text of a user, since programs join names of jobs and attributes.
    fn act(&mut self, job: usize, action: Action, parameter: &str) -> Answer;

    /// Reserves nodes for `nodes=SPECIFICATION`: a new reservation for the number 0, otherwise another try for an
    /// earlier one. Gives the reservation's number, or nothing if there is none.
    fn reserve(&mut self, specification: &str, number: i64) -> Option<i64> {
        let _ = (specification, number);
        None
    }

    /// Gives up a reservation. Whether there was one.
    fn release(&mut self, number: i64) -> bool {
        let _ = number;
        false
    }
}
