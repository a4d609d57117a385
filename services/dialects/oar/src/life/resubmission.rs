//! Jobs that take the place of others: a new id, the same request (OAR-J-21).

use crate::options::submission::{Array, Submission};

/// The exit code that asks for another run.
pub const AGAIN: i32 = 99;
/// A job that asks for another run must have run for longer than this, in seconds.
pub const MINIMUM_RUN: i64 = 60;
/// How often the jobs of a chain are submitted again after failed preparations.
pub const MOST_PREPARATIONS: u32 = 3;

/// Why a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its command ended.
    Itself {
        /// The exit code; `None` if a signal ended it, or there was none.
        exit_code: Option<i32>,
    },
    /// Somebody deleted it.
    Deleted,
    /// Its walltime was over.
    Walltime,
    /// It made way for a job of another queue.
    MadeWay,
    /// Its preparation failed before the command started.
    Preparation {
        /// How many jobs of its chain were made after failed preparations.
        chain: u32,
    },
}

/// A job that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Why.
    pub cause: Cause,
    /// How long it ran, in seconds.
    pub ran: i64,
    /// Whether it has the type idempotent.
    pub is_idempotent: bool,
    /// Whether it is interactive.
    pub is_interactive: bool,
    /// Whether it is a reservation.
    pub is_reservation: bool,
    /// Whether its command runs on a front host: deploy or cosystem.
    pub is_on_front_host: bool,
    /// Whether another job has taken its place already.
    pub is_replaced: bool,
}

/// Whether a new job takes its place by itself. One end gives at most one new job, however often it is told.
pub fn is_due(job: Ended, minimum_run: i64) -> bool {
    if job.is_replaced {
        return false;
    }
    let is_plain = !job.is_interactive && !job.is_reservation;
    match job.cause {
        Cause::MadeWay => job.is_idempotent,
        Cause::Itself { exit_code: Some(AGAIN) } => job.is_idempotent && is_plain && job.ran > minimum_run,
        Cause::Preparation { chain } => is_plain && !job.is_on_front_host && chain < MOST_PREPARATIONS,
        Cause::Itself { .. } | Cause::Deleted | Cause::Walltime => false,
    }
}

/// The request of the job that takes the place of one (OAR-J-21): the same, but it neither waits for what the old one
/// waited for nor begins in Hold, and it is a single job.
pub fn request(old: &Submission) -> Submission {
    Submission {
        dependencies: Vec::new(),
        reservation: None,
        array: Array::Single,
        is_held: false,
        warnings: Vec::new(),
        ..old.clone()
    }
}

/// A job that somebody wants again.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Whether it is interactive.
    pub is_interactive: bool,
    /// Whether it is a reservation.
    pub is_reservation: bool,
    /// Its state.
    pub state: super::state::State,
    /// Whether the caller owns it.
    pub is_own: bool,
    /// Whether a live job uses its key pair.
    pub are_keys_in_use: bool,
}

/// Whether a job can be submitted again on demand (OAR-J-22).
///
/// # Errors
/// The code in place of a job id.
pub const fn on_demand(job: Asked) -> Result<(), i32> {
    use super::state::State;
    if job.is_interactive || job.is_reservation {
        return Err(-1);
    }
    if !matches!(job.state, State::Terminated | State::Error | State::Finishing) {
        return Err(-2);
    }
    if !job.is_own {
        return Err(-3);
    }
    if job.are_keys_in_use { Err(-4) } else { Ok(()) }
}
