//! Refusals of commands and queries.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a command was refused. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The kind of refusal.
    pub code: RefusalCode,
    /// What was wrong and what was expected, for people.
    pub message: String,
}

impl Refusal {
    /// A refusal with this code and message.
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// The kinds of refusal, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// The request makes no sense in itself: wrong value, too large, contradictory.
    Invalid,
    /// It names something that does not exist.
    NotFound,
    /// The actor may not do this.
    PermissionDenied,
    /// It is not possible in the current state, for example releasing a job that has finished.
    Conflict,
    /// A limit of the queue or cluster has been reached.
    LimitReached,
    /// The ledger cannot write: disk full or broken. Nothing was accepted.
    StorageFailed,
    /// Not now; the same command may succeed later.
    Unavailable,
    /// The resources are in use at the moment; the same request may succeed once they are free (SL-R-08).
    Busy,
}
