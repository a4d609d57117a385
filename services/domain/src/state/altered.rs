//! Later changes by people: nodes that they took out of service, attributes of jobs.

use crate::nodes::TakenOut;
use muster_schemas::{JobId, NodeId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The part of a state for such changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Altered {
    /// Nodes that were taken out of service. [`crate::nodes::Node::drained`] says why, also of those that were when nobody kept by
    /// whom.
    pub(crate) nodes: BTreeMap<NodeId, TakenOut>,
    /// Attributes of jobs that differ from the submission; empty ones were removed.
    pub(crate) attributes: BTreeMap<JobId, BTreeMap<String, String>>,
}
