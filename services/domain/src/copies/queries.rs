//! What to copy, and what waits for it.

use crate::{
    copies::{CopyStage, JobCopies},
    jobs::{Job, JobExtras},
    state::State,
};
use muster_schemas::{
    JobId, NodeId, Sequence,
    cluster::NodeCondition,
    copies::{CopyDirection, FileCopies},
    resources::Placement,
};
use std::collections::BTreeSet;

impl JobExtras {
    /// The copying of a job with these additions, if it has files to copy.
    pub(crate) fn new_copies(&self) -> Option<Box<JobCopies>> {
        (!self.copies.is_empty()).then(Box::default)
    }
}

impl CopyStage {
    /// The copying that a node is busy with: node, number and direction.
    pub(crate) fn active(self) -> Option<(NodeId, Sequence, CopyDirection)> {
        match self {
            Self::Coming { node, copy, .. } => Some((node, copy, CopyDirection::In)),
            Self::Leaving { node, copy } => Some((node, copy, CopyDirection::Out)),
            _ => None,
        }
    }
}

impl State {
    /// A job whose files are on a node for its start, or on their way to it or from it.
    pub(crate) fn job_with_files_on(&self, node: NodeId) -> Option<JobId> {
        let has = |job: &Job| {
            let is_bound = job.copies.as_ref().is_some_and(|copies| copies.is_bound) && job.files_at() == Some(node);
            is_bound || job.copying().is_some_and(|(at, ..)| at == node)
        };
        self.jobs.values().find(|job| has(job)).map(|job| job.id)
    }

    /// The nodes with files of jobs, as [`Self::job_with_files_on`] tells it.
    pub(crate) fn nodes_with_files(&self) -> BTreeSet<NodeId> {
        let jobs = self.jobs.values().filter(|job| job.copies.is_some());
        let nodes = jobs.flat_map(|job| {
            let is_bound = job.copies.as_ref().is_some_and(|copies| copies.is_bound);
            let bound = is_bound.then(|| job.files_at()).flatten();
            bound.into_iter().chain(job.copying().map(|(at, ..)| at))
        });
        nodes.collect()
    }

    /// Whether a node that reports copies the results of a job that is over.
    pub(crate) fn has_results_on_their_way(&self, job: &Job) -> bool {
        let leaving = job.copying().filter(|(.., direction)| *direction == CopyDirection::Out);
        leaving.and_then(|(node, ..)| self.node(node)).is_some_and(|node| node.condition == NodeCondition::Up)
    }
}

impl Job {
    /// Its files to copy, if it has some.
    pub fn file_copies(&self) -> Option<&FileCopies> {
        self.extras.as_ref().map(|extras| &extras.copies).filter(|copies| !copies.is_empty())
    }

    /// Whether files have to be copied before it starts.
    pub fn has_files_to_come(&self) -> bool {
        self.file_copies().is_some_and(|copies| !copies.before.is_empty())
    }

    /// Whether a run with this placement waits until files are copied to its first node.
    pub(crate) fn waits_for_files(&self, placement: &Placement) -> bool {
        let lead = placement.shares().next().map(|share| share.node);
        let stage = self.copies.as_ref().map(|copies| copies.stage).unwrap_or_default();
        self.has_files_to_come() && !matches!(stage, CopyStage::In { node } if Some(node) == lead)
    }

    /// Whether files are being copied for it before a run asks for them. It does not start meanwhile.
    pub fn is_copied_ahead(&self) -> bool {
        self.copies.as_ref().is_some_and(|copies| matches!(copies.stage, CopyStage::Coming { run: None, .. }))
    }

    /// The node on which its files already are, if they were copied ahead.
    pub(crate) fn files_at(&self) -> Option<NodeId> {
        match self.copies.as_ref()?.stage {
            CopyStage::In { node } => Some(node),
            _ => None,
        }
    }

    /// The copying for it that a node is busy with.
    pub(crate) fn copying(&self) -> Option<(NodeId, Sequence, CopyDirection)> {
        self.copies.as_ref()?.stage.active()
    }
}
