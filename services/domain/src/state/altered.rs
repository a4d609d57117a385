//! Later changes by people: nodes taken out of service, attributes of jobs, walltimes of runs.

use crate::nodes::TakenOut;
use muster_schemas::{JobId, NodeId, RunId, event::OutputFiles, walltimes::WalltimeAsked};
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
    /// More walltime that runs were granted or still want.
    pub(crate) walltimes: BTreeMap<RunId, WalltimeAsked>,
    /// Files for the output of jobs in place of those of the submission.
    pub(crate) outputs: BTreeMap<JobId, OutputFiles>,
}
