//! The actors that ask for changes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The owner of a job: its submitter. Its processes run as this user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub struct Owner {
    /// The login name.
    pub user: String,
    /// The user number on the submitting host.
    pub uid: u32,
    /// The primary group's number there.
    pub gid: u32,
}

/// The actor who asked for a change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// A person, or a program acting for them, through a gateway.
    User(Owner),
    /// The planner.
    Planner,
    /// The executor of the node of this name.
    Executor(String),
    /// A notifier.
    Notifier,
    /// The ledger itself: timers, liveness, checkpoints.
    Ledger,
    /// The filter-runner of this name.
    Runner(String),
}
