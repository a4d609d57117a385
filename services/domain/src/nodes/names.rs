//! Names that records of the past go by: history is shown with the names of its time.

use super::State;
use muster_schemas::{NodeId, Sequence, event::uuid_bytes::UuidBytes, public};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Names that are no longer those of the present.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PastNames {
    /// Nodes that have been removed. Their numbers are never given again.
    pub(crate) nodes: BTreeMap<NodeId, String>,
    /// Earlier names of the cluster, each with the record that ended it, in order.
    pub(crate) clusters: Vec<(Sequence, String)>,
}

impl State {
    /// The number and name of each node that there is or has been.
    pub fn known_nodes(&self) -> impl Iterator<Item = (NodeId, &str)> {
        let removed = self.past_names.nodes.iter().map(|(node, name)| (*node, name.as_str()));
        self.nodes().map(|node| (node.id, node.spec.name.as_str())).chain(removed)
    }
}

impl public::Names for State {
    fn node_name(&self, node: NodeId) -> Option<&str> {
        let removed = || self.past_names.nodes.get(&node).map(String::as_str);
        self.node(node).map(|node| node.spec.name.as_str()).or_else(removed)
    }

    fn cluster_name(&self, at: Sequence) -> &str {
        let past = &self.past_names.clusters;
        let later = past.partition_point(|(ended_by, _)| *ended_by <= at);
        past.get(later).map_or(&self.settings().name, |(_, name)| name)
    }

    fn log_id(&self) -> UuidBytes {
        UuidBytes(self.cluster().map_or([0; 16], |cluster| cluster.cluster_id))
    }
}
