//! The deletion of a job: `oardel`.

use super::state::State;
use std::collections::BTreeSet;

/// How deletions are tried.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// After more than this many seconds the signal is sent again, in each check.
    pub retry: i64,
    /// After more than this many seconds the job is closed without its node.
    pub give_up: i64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { retry: 20, give_up: 300 }
    }
}

/// What to do with a job that is being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send SIGTERM to the launcher on its first node.
    Terminate,
    /// Wait for the next check.
    Wait,
    /// Close it: it is in Error, and its nodes are suspected.
    Close,
}

/// The next step in a check (OAR-S-20, OAR-S-21).
pub const fn step(asked_at: i64, was_signalled: bool, now: i64, patience: Patience) -> Step {
    let elapsed = now - asked_at;
    if elapsed > patience.give_up {
        Step::Close
    } else if elapsed > patience.retry || !was_signalled {
        Step::Terminate
    } else {
        Step::Wait
    }
}

/// The nodes that are suspected after a job was closed (OAR-S-21): all that did not confirm that they are clean. Without
/// isolation no node can.
pub fn suspected(nodes: &BTreeSet<String>, clean: &BTreeSet<String>, has_isolation: bool) -> BTreeSet<String> {
    if has_isolation { nodes - clean } else { nodes.clone() }
}

/// The caller of `oardel`, and the job.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Whether the caller owns the job or is an administrator.
    pub has_right: bool,
    /// The state of the job.
    pub state: State,
    /// Whether it is being deleted already.
    pub is_being_deleted: bool,
    /// Whether it is interactive.
    pub is_interactive: bool,
}

/// What a deletion comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The job is in Error at once.
    Error,
    /// Its processes are ended first.
    Ending,
    /// Nothing: it has ended.
    Nothing,
}

/// What deleting a job comes to (OAR-S-20, OAR-S-22, OAR-S-25).
///
/// # Errors
/// The exit status of `oardel`.
pub const fn delete(request: Request) -> Result<Effect, u8> {
    if !request.has_right {
        return Err(1);
    }
    if request.state.is_final() {
        return Ok(Effect::Nothing);
    }
    if request.is_being_deleted {
        return Err(6);
    }
    match request.state {
        State::Waiting | State::Hold | State::ToAckReservation | State::ToLaunch | State::ToError => Ok(Effect::Error),
        _ => Ok(Effect::Ending),
    }
}

/// Whether a signal can be sent to a job (OAR-S-31, OAR-S-32).
///
/// # Errors
/// The exit status of `oardel`.
pub const fn signal(request: Request) -> Result<(), u8> {
    if !request.has_right {
        return Err(1);
    }
    if !matches!(request.state, State::Running) {
        return Err(5);
    }
    if request.is_interactive { Err(7) } else { Ok(()) }
}

/// Reads the id of a job.
///
/// # Errors
/// The exit status of `oardel` for an id that is none.
pub fn id(text: &str) -> Result<u64, u8> {
    crate::text::decimal(text).filter(|id| *id > 0).ok_or(4)
}
