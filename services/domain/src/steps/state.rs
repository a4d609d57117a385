//! Steps inside runs, and the jobs that end with their clients.

use crate::runs::{ByNode, OnNode};
use muster_schemas::{
    JobId, NodeId, RunId, Sequence, StepId, Timestamp,
    event::NodeExit,
    steps::{StepShare, StepSpec},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// The progress of an unfinished step of a run: one launched by a client, or an instance of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepProgress {
    /// The record of its start, with what it launches.
    pub started_sequence: Sequence,
    /// For each node of the step, in order of rank: the node, the number of tasks, and the end there.
    pub parts: ByNode<PartProgress>,
}

/// The progress of a step's part on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartProgress {
    /// The node.
    pub node: NodeId,
    /// The component of the job to which it belongs, from 0.
    pub component: u32,
    /// The number of tasks.
    pub tasks: u32,
    /// Its end, if it has ended.
    pub exit: Option<NodeExit>,
}

impl StepProgress {
    /// The index of its part on a node for a component.
    pub fn position(&self, node: NodeId, component: u32) -> Option<usize> {
        self.parts.positions_on(node).find(|at| self.parts[*at].component == component)
    }
}

impl OnNode for PartProgress {
    fn node(&self) -> NodeId {
        self.node
    }
}

/// The state of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Clients {
    /// Launched steps that have not ended, except tasks of lists, which are steps too.
    pub(crate) steps: BTreeMap<RunId, BTreeMap<StepId, Step>>,
    /// Jobs whose client has to report.
    pub(crate) kept: BTreeMap<JobId, KeptJob>,
}

/// A job whose client has to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptJob {
    /// The time by which the client has to report.
    pub until: Timestamp,
    /// How long it may be silent.
    pub seconds: u32,
    /// Whether it already failed once to report in time.
    pub is_late: bool,
}

/// An unfinished step launched by a client. [`StepProgress`] has the progress of each part; its parts are in the same
/// order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its name, for people.
    pub name: Arc<str>,
    /// When it was launched.
    pub launched: Timestamp,
    /// Its parts, in the order of its places.
    pub parts: ByNode<StepPart>,
    /// Whether other steps may use its cores.
    pub overlaps: bool,
    /// Whether the first part that fails ends the others.
    pub ends_on_failure: bool,
    /// Seconds from SIGTERM to SIGKILL; `None` means the cluster's setting.
    pub kill_grace_seconds: Option<u32>,
    /// How long it may run, in seconds.
    pub walltime_seconds: Option<u64>,
    /// Whether that was changed after its launch was ordered.
    pub walltime_changed: bool,
}

/// The part of a step on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPart {
    /// Its share of the node.
    pub share: StepShare,
    /// Whether it is being ended, and how.
    pub stopping: Option<AtOnce>,
}

/// Whether an end allows grace time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AtOnce {
    /// With grace time.
    No,
    /// Without.
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
            walltime_changed: false,
        }
    }

    /// The index of its part on a node for a component.
    pub fn position(&self, node: NodeId, component: u32) -> Option<usize> {
        self.parts.positions_on(node).find(|at| self.parts[*at].share.component == component)
    }
}

impl OnNode for StepPart {
    fn node(&self) -> NodeId {
        self.share.node
    }
}
