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
    /// Why it is or was being ended.
    pub reason: StopReason,
    /// Its end; `None` until its last part has ended, and if the run ended before that.
    pub over: Option<ComponentOver>,
}

/// A component that has ended and whose resources the run has given back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentOver {
    /// When it ended.
    pub at: Timestamp,
    /// Its placement.
    pub placement: ComponentPlacement,
    /// Its usage.
    pub usage: Usage,
}

impl SingleEnd {
    /// The outcome of a component ended for this reason.
    pub fn outcome(&self) -> Outcome {
        match self.reason {
            StopReason::Finished | StopReason::FinishedAtOnce => Outcome::DeclaredFinished,
            _ => Outcome::Cancelled,
        }
    }
}
