//! Queries about runs.

use crate::{runs::Run, state::State};
use muster_schemas::RunId;

impl State {
    /// The number of the next run.
    pub fn next_run(&self) -> RunId {
        RunId(self.next_run.max(1))
    }

    /// All runs that hold resources, by number.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = &Run> {
        self.runs.values().map(Box::as_ref)
    }

    /// A run that holds resources.
    pub fn run(&self, id: RunId) -> Option<&Run> {
        self.runs.get(&id).map(Box::as_ref)
    }
}
