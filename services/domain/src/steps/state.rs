//! Steps inside runs, and the jobs that end with their clients.

use crate::runs::{ByNode, OnNode};
use muster_schemas::{
    JobId, NodeId, RunId, Sequence, StepId, Timestamp,
    event::NodeExit,
    steps::{StepShare, StepSpec},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// How far a step is that was started inside a run and has not ended: one that a client launched, or an instance of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepProgress {
    /// The record of its start, which has what it launches.
    pub started_sequence: Sequence,
    /// For each node of the step, in order of rank: the node, how many tasks, and how it ended there.
    pub parts: ByNode<PartProgress>,
}

/// How far the part of a step on one node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartProgress {
    /// The node.
    pub node: NodeId,
    /// Which component of the job it is in, from 0.
    pub component: u32,
    /// How many tasks.
    pub tasks: u32,
    /// How it ended, if it has.
    pub exit: Option<NodeExit>,
}

impl StepProgress {
    /// Which of its parts is that on a node for a component.
    pub fn position(&self, node: NodeId, component: u32) -> Option<usize> {
        self.parts.positions_on(node).find(|at| self.parts[*at].component == component)
    }
}

impl OnNode for PartProgress {
    fn node(&self) -> NodeId {
        self.node
    }
}

/// The part of a state for clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Clients {
    /// Steps that were launched and have not ended. Tasks of a list, which are steps too, are not among them.
    pub(crate) steps: BTreeMap<RunId, BTreeMap<StepId, Step>>,
    /// Jobs whose client has to report.
    pub(crate) kept: BTreeMap<JobId, KeptJob>,
}

/// A job whose client has to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptJob {
    /// Until when.
    pub until: Timestamp,
    /// For how long it may be silent.
    pub seconds: u32,
    /// Whether it failed to report in time once already.
    pub is_late: bool,
}

/// A step that a client launched and that has not ended. [`StepProgress`] says how far each part is; its parts are in the same
/// order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its name, for people.
    pub name: Arc<str>,
    /// Since when.
    pub launched: Timestamp,
    /// Its parts, in the order of its places.
    pub parts: ByNode<StepPart>,
    /// Whether other steps may use its cores.
    pub overlaps: bool,
    /// Whether the first part that fails ends the others.
    pub ends_on_failure: bool,
    /// From SIGTERM to SIGKILL; `None` means what the cluster's settings say.
    pub kill_grace_seconds: Option<u32>,
    /// How long it may run, in seconds.
    pub walltime_seconds: Option<u64>,
}

/// The part of a step on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPart {
    /// Its share of the node.
    pub share: StepShare,
    /// Whether it is being ended, and if so whether without grace.
    pub stopping: Option<AtOnce>,
}

/// Whether something ends without grace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AtOnce {
    /// It has its grace.
    No,
    /// It has none.
    Yes,
}

impl AtOnce {
    pub(crate) fn of(is_forced: bool) -> Self {
        if is_forced { Self::Yes } else { Self::No }
    }
}

impl Step {
    pub(crate) fn of(spec: &StepSpec, shares: &[StepShare], now: Timestamp) -> Self {
        Self {
            name: spec.name.as_str().into(),
            launched: now,
            parts: shares.iter().map(|share| StepPart { share: share.clone(), stopping: None }).collect(),
            overlaps: spec.overlaps,
            ends_on_failure: spec.ends_on_failure,
            kill_grace_seconds: spec.kill_grace_seconds,
            walltime_seconds: spec.walltime_seconds,
        }
    }

    /// Which of its parts is that on a node for a component.
    pub fn position(&self, node: NodeId, component: u32) -> Option<usize> {
        self.parts.positions_on(node).find(|at| self.parts[*at].share.component == component)
    }
}

impl OnNode for StepPart {
    fn node(&self) -> NodeId {
        self.share.node
    }
}
