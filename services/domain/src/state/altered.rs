//! Later changes by people: nodes taken out of service, attributes of jobs.

use crate::nodes::TakenOut;
use muster_schemas::{JobId, NodeId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The state of such changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Altered {
    /// Nodes taken out of service. [`crate::nodes::Node::drained`] holds the reason, also for nodes drained before the
    /// actor was recorded.
    pub(crate) nodes: BTreeMap<NodeId, TakenOut>,
    /// Attributes of jobs that differ from the submission; empty ones were removed.
    pub(crate) attributes: BTreeMap<JobId, BTreeMap<String, String>>,
}
