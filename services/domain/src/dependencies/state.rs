//! A dependency and its state.

use muster_schemas::{
    Timestamp,
    job::{Dependency, DependencyKind},
};
use serde::{Deserialize, Serialize};

/// A dependency and its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// The event that the condition waits for.
    pub dependency: Dependency,
    /// Its state.
    pub status: ConditionStatus,
}

/// The state of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It may still happen.
    Unmet,
    /// It has happened; its delay lasts until this time.
    Delayed(Timestamp),
    /// It has happened.
    Met,
    /// It can no longer happen.
    Never,
}

impl Condition {
    /// Whether the condition no longer holds the job (as a whole, if it is checked task by task).
    pub(crate) fn lets_go(&self) -> bool {
        match self.dependency.kind {
            DependencyKind::SameIndexSucceeded => self.status != ConditionStatus::Never,
            DependencyKind::BeforeStarted
            | DependencyKind::BeforeEnded
            | DependencyKind::BeforeSucceeded
            | DependencyKind::BeforeFailed => true,
            _ => self.status == ConditionStatus::Met,
        }
    }
}
