//! The state of a job that muster's own description tells.

use super::state::State;
use muster_schemas::job::{ExitStatus, JobState, Outcome};

/// What the state of a job of OAR follows from.
#[derive(Clone, Copy, Debug)]
pub struct Neutral<'n> {
    /// Its state.
    pub state: JobState,
    /// How it ended, if it did.
    pub outcome: Option<&'n Outcome>,
    /// Whether somebody holds it.
    pub is_held: bool,
    /// Whether it is a reservation that nobody has accepted yet.
    pub is_unanswered: bool,
    /// Whether it is suspended and somebody has asked that it continues.
    pub is_resuming: bool,
    /// Whether it has no command: then its walltime or its deletion is its normal end.
    pub is_noop: bool,
    /// Whether it runs on a node whose agent asks for its orders: there the end by a signal is one in Error (OAR-K-06).
    pub is_pulled: bool,
    /// Whether it is over with a run that had started.
    pub has_run: bool,
}

/// The state of a job. It is Terminated if its command ended by itself, and in Error if it never ran, or the system or
/// somebody ended it (OAR-J-04).
pub fn state(job: Neutral<'_>) -> State {
    match job.state {
        JobState::Held if job.is_held => State::Hold,
        JobState::Held | JobState::Queued if job.is_unanswered => State::ToAckReservation,
        JobState::Held | JobState::Queued => State::Waiting,
        JobState::Launching => State::Launching,
        JobState::Running => State::Running,
        JobState::Suspended if job.is_resuming => State::Resuming,
        JobState::Suspended => State::Suspended,
        JobState::Finishing => State::Finishing,
        JobState::Finished => match job.outcome {
            Some(Outcome::Failed(ExitStatus::Signal(_))) if job.is_pulled => State::Error,
            Some(Outcome::Completed | Outcome::Failed(_)) => State::Terminated,
            Some(Outcome::DeclaredFinished) if job.has_run => State::Terminated,
            Some(Outcome::Cancelled | Outcome::TimedOut) if job.is_noop && job.has_run => State::Terminated,
            _ => State::Error,
        },
    }
}

/// The exit code of a job in the form of `wait`: the code times 256, or the signal. `None` if no command ended.
pub const fn wait_status(outcome: &Outcome) -> Option<u32> {
    match outcome {
        Outcome::Completed => Some(0),
        Outcome::Failed(ExitStatus::Code(code)) => Some((*code as u32) << 8),
        Outcome::Failed(ExitStatus::Signal(signal)) => Some(*signal as u32),
        _ => None,
    }
}
