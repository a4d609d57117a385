//! Components of a running job that end before the job does.

use muster_schemas::{
    Timestamp,
    event::StopReason,
    job::{Outcome, Usage},
    resources::ComponentPlacement,
};
use serde::{Deserialize, Serialize};

/// The end of one component while the others continue (SL-M-02).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SingleEnd {
    /// Why it is being ended, or was.
    pub reason: StopReason,
    /// Its outcome; `None` until its last part has ended, and if the run ended before that.
    pub over: Option<ComponentOver>,
}

/// A component that has ended, and whose resources the run has given back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentOver {
    /// When.
    pub at: Timestamp,
    /// The placement that it had.
    pub placement: ComponentPlacement,
    /// Its usage there.
    pub usage: Usage,
}

impl SingleEnd {
    /// The outcome of a component that is ended so.
    pub fn outcome(&self) -> Outcome {
        match self.reason {
            StopReason::Finished | StopReason::FinishedAtOnce => Outcome::DeclaredFinished,
            _ => Outcome::Cancelled,
        }
    }
}
