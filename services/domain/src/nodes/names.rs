//! Former names: history is shown with the names of its time.

use muster_schemas::{NodeId, Sequence, event::uuid_bytes::UuidBytes};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Names that are no longer in use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PastNames {
    /// Removed nodes. Their numbers are never reused.
    pub(crate) nodes: BTreeMap<NodeId, String>,
    /// Former names of the cluster, each with the record that ended it, in order.
    pub(crate) clusters: Vec<(Sequence, String)>,
    /// The ids that the log got when it was restored, each with the first record under it, in order.
    pub(crate) logs: Vec<(Sequence, UuidBytes)>,
}
