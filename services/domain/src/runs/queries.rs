//! Queries about runs.

use crate::{runs::Run, state::State};
use muster_schemas::{RunId, resources::Placement};

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

    /// How long the launch of a run on these nodes may take, in seconds. An agent hears of it when it asks (OAR-K-01).
    pub(crate) fn launch_timeout(&self, placement: &Placement) -> u32 {
        let settings = self.settings();
        let is_pulled = |node| self.node(node).is_some_and(|node| node.spec.is_pulled());
        let patience =
            if placement.shares().any(|share| is_pulled(share.node)) { settings.agent_patience() } else { 0 };
        settings.launch_timeout_seconds.max(patience)
    }
}
