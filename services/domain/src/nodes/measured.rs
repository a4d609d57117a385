//! The measured loads of nodes.

use muster_schemas::{NodeId, node::NodeLoad};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The measured loads, and the node that was chosen last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Loads {
    /// The last one of each node since it reports.
    pub(super) measured: BTreeMap<NodeId, NodeLoad>,
    /// The node of the policy's table on which something started last.
    pub(super) last: Option<NodeId>,
}
