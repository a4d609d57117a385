//! The nodes of planning domains, and the jobs that open these.

use crate::domains::Opener;
use muster_schemas::{JobId, NodeId, resources::NodeShare};
use std::collections::BTreeMap;

/// The first number of nodes in domains. Real nodes are numbered from 1.
pub(super) const FIRST_INNER: u32 = 1 << 31;

/// The jobs that open domains, and the nodes that these consist of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Domains {
    /// The jobs that open domains, waiting or running.
    pub(super) openers: BTreeMap<JobId, Opener>,
    /// The nodes of those that have a run.
    pub(super) open: BTreeMap<JobId, Vec<InnerNode>>,
    /// The real node of each inner one.
    pub(super) real: BTreeMap<NodeId, NodeId>,
    /// How many waiting jobs ask for domains.
    pub waiting: usize,
}

/// A share that a run holds for a domain.
#[derive(Clone, Debug)]
pub(super) struct InnerNode {
    pub(super) id: NodeId,
    pub(super) share: NodeShare,
}

impl Domains {
    /// The nodes that a domain's openers hold, in the order of those jobs.
    pub(super) fn nodes_of<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (JobId, &'a InnerNode)> {
        let opens = |job: &JobId| self.openers.get(job).is_some_and(|opener| *opener.key == *key);
        let open = self.open.iter().filter(move |(job, _)| opens(job));
        open.flat_map(|(job, nodes)| nodes.iter().map(|node| (*job, node)))
    }

    /// This many numbers in a row, greater than those of all nodes.
    pub(super) fn numbers(&self, count: usize) -> impl Iterator<Item = NodeId> + use<> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let first = self.real.keys().next_back().map_or(FIRST_INNER, |last| last.0.saturating_add(1));
        (first..first.saturating_add(count)).map(NodeId)
    }

    /// The open jobs of a domain behind a job.
    pub(super) fn open_behind(&self, key: &str, job: JobId) -> Vec<JobId> {
        let behind = self.open.keys().filter(|other| **other > job);
        behind.filter(|other| self.openers.get(other).is_some_and(|opener| *opener.key == *key)).copied().collect()
    }
}
