//! Actions of clients inside running jobs: the steps that they have launched, and the jobs that end with them.

use super::{ByNode, OnNode, Run, State};
use muster_schemas::{
    JobId, NodeId, RunId, StepId, Timestamp,
    resources::IndexSet,
    steps::{StepShare, StepSpec},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// The part of a state for clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sessions {
    /// Steps that were launched and have not ended. Tasks of a list, which are steps too, are not among them.
    pub(crate) launched: BTreeMap<RunId, BTreeMap<StepId, LaunchedStep>>,
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

/// A step that was launched and has not ended. [`super::Step`] says how far each part is; its
/// parts are in the same order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchedStep {
    /// Its name, for people.
    pub name: Arc<str>,
    /// Since when.
    pub launched: Timestamp,
    /// Its parts, in the order of its places.
    pub parts: ByNode<LaunchedPart>,
    /// Whether other steps may use its cores.
    pub overlaps: bool,
    /// Whether the first part that fails ends the others.
    pub ends_on_failure: bool,
    /// From SIGTERM to SIGKILL; `None` means what the cluster's settings say.
    pub kill_grace_seconds: Option<u32>,
    /// How long it may run, in seconds.
    pub walltime_seconds: Option<u64>,
}

/// The part of a launched step on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchedPart {
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

impl LaunchedStep {
    pub(crate) fn of(spec: &StepSpec, shares: &[StepShare], now: Timestamp) -> Self {
        Self {
            name: spec.name.as_str().into(),
            launched: now,
            parts: shares.iter().map(|share| LaunchedPart { share: share.clone(), stopping: None }).collect(),
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

impl OnNode for LaunchedPart {
    fn node(&self) -> NodeId {
        self.share.node
    }
}

/// The resources of a part of a run that its steps use exclusively.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InUse {
    pub(crate) cores: IndexSet,
    pub(crate) memory_bytes: u64,
}

impl State {
    /// The steps of a run that were launched and have not ended, by number.
    pub fn launched_steps(&self, run: RunId) -> impl Iterator<Item = (StepId, &LaunchedStep)> {
        self.sessions.launched.get(&run).into_iter().flatten().map(|(id, step)| (*id, step))
    }

    /// A step that was launched and has not ended.
    pub fn launched_step(&self, run: RunId, step: StepId) -> Option<&LaunchedStep> {
        self.sessions.launched.get(&run)?.get(&step)
    }

    /// Whether, and until when, the client of a job has to report.
    pub fn kept(&self, job: JobId) -> Option<KeptJob> {
        self.sessions.kept.get(&job).copied()
    }

    /// The resources of the run's part on a node for a component that its steps use exclusively.
    pub(crate) fn in_use(&self, run: &Run, node: NodeId, component: u32) -> InUse {
        let mut in_use = InUse::default();
        for (id, step) in self.launched_steps(run.id).filter(|(_, step)| !step.overlaps) {
            let has_ended = |at: usize| {
                run.steps.get(&id).and_then(|step| step.parts.get(at)).is_none_or(|part| part.exit.is_some())
            };
            let at = step.position(node, component).filter(|at| !has_ended(*at));
            if let Some(part) = at.and_then(|at| step.parts.get(at)) {
                in_use.cores = in_use.cores.union(&part.share.cores);
                in_use.memory_bytes = in_use.memory_bytes.saturating_add(part.share.memory_bytes);
            }
        }
        in_use
    }
}
