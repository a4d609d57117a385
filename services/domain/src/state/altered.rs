//! Later changes by people: nodes that they took out of service, attributes of jobs.

use super::State;
use muster_schemas::{JobId, NodeId, Timestamp};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// The part of a state for such changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Altered {
    /// Nodes that were taken out of service. [`super::Node::drained`] says why, also of those that were when nobody kept by
    /// whom.
    pub(crate) nodes: BTreeMap<NodeId, TakenOut>,
    /// Attributes of jobs that differ from the submission; empty ones were removed.
    pub(crate) attributes: BTreeMap<JobId, BTreeMap<String, String>>,
}

/// How a node was taken out of service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenOut {
    /// Login name of who did.
    pub by: Arc<str>,
    /// When.
    pub at: Timestamp,
    /// Whether it is down, rather than drained.
    pub is_down: bool,
}

impl State {
    /// Who took a node out of service, if it is and the actor was recorded.
    pub fn taken_out(&self, node: NodeId) -> Option<&TakenOut> {
        self.altered.nodes.get(&node)
    }

    /// The attributes of a job that differ from the submission; empty ones were removed.
    pub fn altered_attributes(&self, job: JobId) -> impl Iterator<Item = (&str, &str)> {
        let attributes = self.altered.attributes.get(&job.whole()).into_iter().flatten();
        attributes.map(|(name, value)| (name.as_str(), value.as_str()))
    }
}
