//! Names that records of the past go by: history is shown with the names of its time.

use muster_schemas::{NodeId, Sequence};
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
