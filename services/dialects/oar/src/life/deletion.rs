//! The deletion of a job: `oardel`.

use super::state::State;

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
