//! Components of a running job that end before the job does.

use super::Job;
use muster_schemas::{
    JobId, Timestamp,
    event::StopReason,
    job::{Outcome, Usage},
    resources::ComponentPlacement,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a state has of single components, beyond [`super::sessions::Sessions`], which was stored without it in an earlier
/// release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SingleEnds {
    /// For each job the components of its last run that were ended alone.
    pub(crate) jobs: BTreeMap<JobId, BTreeMap<u32, SingleEnd>>,
}

/// The end of one component while the others go on (SL-M-02).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SingleEnd {
    /// Why it is being ended, or was.
    pub reason: StopReason,
    /// What it came to; `None` until its last part has ended, and if the run ended before that.
    pub over: Option<ComponentOver>,
}

/// A component that has ended, and whose resources the run has given back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentOver {
    /// When.
    pub at: Timestamp,
    /// What it had.
    pub placement: ComponentPlacement,
    /// What it used there.
    pub usage: Usage,
}

impl SingleEnd {
    /// What a component comes to that is ended so.
    pub fn outcome(&self) -> Outcome {
        match self.reason {
            StopReason::Finished | StopReason::FinishedAtOnce => Outcome::DeclaredFinished,
            _ => Outcome::Cancelled,
        }
    }
}

impl Job {
    /// When and how a component of its last run ended alone, if it has: with the run, if it was being ended then.
    pub fn component_ended(&self, component: u32) -> Option<(Timestamp, Outcome)> {
        let end = self.single_end(component)?;
        let last = || self.last_run.as_ref().filter(|_| self.run().is_none()).map(|run| run.ended);
        let at = end.over.as_ref().map(|over| over.at).or_else(last)?;
        Some((at, end.outcome()))
    }

    /// Why a component of its last run was ended alone, if it was.
    pub fn single_end(&self, component: u32) -> Option<&SingleEnd> {
        self.single_ends.as_ref()?.get(&component)
    }

    /// The components of its last run that have ended alone, with what they came to.
    pub fn components_over(&self) -> impl Iterator<Item = (u32, &ComponentOver)> {
        let ends = self.single_ends.iter().flat_map(|ends| ends.iter());
        ends.filter_map(|(component, end)| Some((*component, end.over.as_ref()?)))
    }
}
