//! Queries about steps and clients.

use crate::{
    runs::Run,
    state::State,
    steps::{KeptJob, Step},
};
use muster_schemas::{JobId, NodeId, RunId, StepId, resources::IndexSet};

/// The resources of a part of a run that its steps use exclusively.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InUse {
    pub(crate) cores: IndexSet,
    pub(crate) memory_bytes: u64,
    pub(crate) gpus: IndexSet,
}

impl State {
    /// The launched steps of a run that have not ended, by number.
    pub fn steps_of(&self, run: RunId) -> impl Iterator<Item = (StepId, &Step)> {
        self.clients.steps.get(&run).into_iter().flatten().map(|(id, step)| (*id, step))
    }

    /// A launched step that has not ended.
    pub fn step(&self, run: RunId, step: StepId) -> Option<&Step> {
        self.clients.steps.get(&run)?.get(&step)
    }

    /// Whether, and until when, the client of a job has to report.
    pub fn kept(&self, job: JobId) -> Option<KeptJob> {
        self.clients.kept.get(&job).copied()
    }

    /// The resources of a run on a node, for a component, that its steps use exclusively.
    pub(crate) fn in_use(&self, run: &Run, node: NodeId, component: u32) -> InUse {
        let mut in_use = InUse::default();
        for (id, step) in self.steps_of(run.id).filter(|(_, step)| !step.overlaps) {
            let has_ended = |at: usize| {
                run.steps.get(&id).and_then(|step| step.parts.get(at)).is_none_or(|part| part.exit.is_some())
            };
            let at = step.position(node, component).filter(|at| !has_ended(*at));
            if let Some(part) = at.and_then(|at| step.parts.get(at)) {
                in_use.cores = in_use.cores.union(&part.share.cores);
                in_use.gpus = part.share.gpus.iter().fold(in_use.gpus, |all, gpus| all.union(gpus));
                in_use.memory_bytes = in_use.memory_bytes.saturating_add(part.share.memory_bytes);
            }
        }
        in_use
    }
}
