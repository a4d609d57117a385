//! What the numbers in records mean, for their public form.

use muster_domain::State;
use muster_schemas::{
    event::{Event, Record},
    ids::{JobId, NodeId, RunId},
    public,
};
use std::collections::HashMap;

/// Names as of some point of the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    cluster: String,
    nodes: HashMap<NodeId, String>,
    runs: HashMap<RunId, JobId>,
}

impl Names {
    /// As in a state.
    pub(crate) fn of(state: &State) -> Self {
        Self {
            cluster: state.settings().name.clone(),
            nodes: state.nodes().map(|node| (node.id, node.spec.name.clone())).collect(),
            runs: state.runs().map(|run| (run.id, run.job)).collect(),
        }
    }

    /// The cluster's name.
    pub(crate) fn cluster(&self) -> &str {
        &self.cluster
    }

    /// Takes in what a record says, before its public form is made.
    pub(crate) fn learn(&mut self, record: &Record) {
        match &record.event {
            Event::SettingsChanged { settings } => self.cluster.clone_from(&settings.name),
            Event::NodeAdded { node, spec } => drop(self.nodes.insert(*node, spec.name.clone())),
            Event::RunAllocated { job, run, .. } => drop(self.runs.insert(*run, *job)),
            _ => {}
        }
    }

    /// Drops what nothing behind a record can name, after its public form was made.
    pub(crate) fn forget(&mut self, record: &Record) {
        match &record.event {
            Event::NodeRemoved { node } => drop(self.nodes.remove(node)),
            Event::RunEnded { run, .. } => drop(self.runs.remove(run)),
            _ => {}
        }
    }
}

impl public::Names for Names {
    fn node_name(&self, node: NodeId) -> Option<&str> {
        self.nodes.get(&node).map(String::as_str)
    }

    fn job_of_run(&self, run: RunId) -> Option<JobId> {
        self.runs.get(&run).copied()
    }
}
