//! Hold, suspend and resume: `oarhold` and `oarresume`.

use super::state::State;
use crate::resources::{property::TYPE, table::Table};
use std::collections::BTreeSet;

/// The caller of `oarhold` or `oarresume`, and the job.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Whether the caller owns the job or is an administrator.
    pub has_right: bool,
    /// Whether the caller is an administrator.
    pub is_administrator: bool,
    /// The state of the job.
    pub state: State,
    /// Whether its command runs on a front host: deploy or cosystem.
    pub is_on_front_host: bool,
}

/// What a site allows.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Whether jobs have isolation groups.
    pub has_isolation: bool,
    /// Whether users may suspend and resume their running jobs (`USERS_ALLOWED_HOLD_RESUME`).
    pub users_may: bool,
}

/// The state after `oarhold`, or after `oarhold -r` for a running job (OAR-S-01, OAR-S-02).
///
/// # Errors
/// The exit status, and why.
pub fn hold(request: Request, site: Site, running_too: bool) -> Result<State, (u8, &'static str)> {
    if !request.has_right {
        return Err((1, "the job belongs to somebody else"));
    }
    match request.state {
        State::Waiting => Ok(State::Hold),
        State::Running if !running_too => Err((1, "the job runs; -r suspends it")),
        State::Running if request.is_on_front_host => {
            Err((2, "a job of the type deploy or cosystem cannot be suspended"))
        }
        State::Running if !site.has_isolation => Err((1, "jobs cannot be suspended without isolation")),
        State::Running if !request.is_administrator && !site.users_may => Err((1, "only administrators suspend jobs")),
        State::Running => Ok(State::Suspended),
        _ => Err((1, "the job neither waits nor runs")),
    }
}

/// The state after `oarresume` (OAR-S-01, OAR-S-03).
///
/// # Errors
/// The exit status, and why.
pub fn resume(request: Request, site: Site) -> Result<State, (u8, &'static str)> {
    if !request.has_right {
        return Err((1, "the job belongs to somebody else"));
    }
    match request.state {
        State::Hold => Ok(State::Waiting),
        State::Suspended if !request.is_administrator && !site.users_may => Err((1, "only administrators resume jobs")),
        State::Suspended => Ok(State::Resuming),
        _ => Err((1, "the job is neither held nor suspended")),
    }
}

/// Whether a job that is being resumed can run: no other live job holds any of its resources (OAR-S-03).
pub fn may_run_again<'r>(own: &BTreeSet<u32>, others: impl IntoIterator<Item = &'r BTreeSet<u32>>) -> bool {
    others.into_iter().all(|other| own.is_disjoint(other))
}

/// The resources of a suspended job that stay held: those of types that are not offered (OAR-S-05).
pub fn still_held(table: &Table, resources: &BTreeSet<u32>, offered_types: &[String]) -> BTreeSet<u32> {
    let is_offered =
        |id: &u32| table.resource(*id).is_some_and(|one| offered_types.iter().any(|kind| kind == one.text(TYPE)));
    resources.iter().copied().filter(|id| !is_offered(id)).collect()
}
