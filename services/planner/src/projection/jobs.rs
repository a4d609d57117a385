//! Jobs and runs of a state as the engine takes them.

use crate::{
    model::{ActiveRun, ComponentDemand, Demand, Holder, QueuedJob, QueuedTasks, Slot},
    pass,
};
use muster_domain::{
    State,
    state::{Component, Job, Run},
};
use muster_schemas::{Timestamp, event::Owner, plan::SlotSpec, resources::IndexSet};
use std::{collections::HashMap, sync::Arc};

/// A holder is shared by all jobs of the same owner and account. It is only looked up, never walked.
#[derive(Clone, Debug, Default)]
pub(super) struct Holders(HashMap<OwnerAndAccount, Arc<Holder>>);

type OwnerAndAccount = (Arc<Owner>, Option<Arc<str>>);

impl Holders {
    fn of(&mut self, job: &Job) -> Arc<Holder> {
        let key = (job.owner.clone(), job.lead().account.clone());
        let holder = self.0.entry(key).or_insert_with_key(|(owner, account)| {
            Arc::new(Holder { user: owner.user.as_str().into(), group: owner.gid, account: account.clone() })
        });
        holder.clone()
    }

    /// The job as it waits; `None` if it does not, or a gate of its own is shut. A stopped queue is none of its own.
    pub(super) fn queued(&mut self, state: &State, job: &Job) -> Option<QueuedJob> {
        if !job.is_waiting() || !job.gates_open() || !has_begun_reservations(state, job) {
            return None;
        }
        Some(QueuedJob {
            id: job.id,
            tasks: tasks(state, job)?,
            demand: Arc::new(demand(job)),
            holder: self.of(job),
            priority: job.lead().priority,
            arrival: job.queued,
            attributes: None,
            slot: job.slot.as_deref().map(slot),
        })
    }

    /// The run as it holds resources.
    pub(super) fn active(&mut self, job: &Job, run: &Run) -> ActiveRun {
        ActiveRun {
            job: run.job,
            demand: Arc::new(demand(job)),
            holder: self.of(job),
            placement: run.placement.clone(),
            expected_end: expected_end(job, run),
        }
    }
}

/// A promise as the engine has it.
pub(super) fn slot(spec: &SlotSpec) -> Slot {
    Slot { start: spec.start, placement: spec.placement.clone() }
}

/// The tasks that wait. No array: `Some(None)`. An array none of whose tasks may start: `None`.
#[allow(clippy::option_option, reason = "an array without tasks that may start is not the same as no array")]
fn tasks(state: &State, job: &Job) -> Option<Option<QueuedTasks>> {
    let whole = || state.job(job.id.whole()).and_then(|whole| whole.array.as_ref());
    let (indices, headroom) = match (&job.array, job.id.index) {
        (Some(array), _) => (state.startable(job, array).into_owned(), array.headroom()),
        // A task that was put back into the queue counts towards the limit of its array.
        (None, Some(index)) => (IndexSet::from_range(index, index), whole().map_or(1, |array| array.headroom())),
        (None, None) => return Some(None),
    };
    (!indices.is_empty() && headroom > 0).then_some(Some(QueuedTasks { indices, headroom }))
}

fn has_begun_reservations(state: &State, job: &Job) -> bool {
    job.reservations().all(|name| state.reservation(name).is_some_and(|reservation| reservation.begun))
}

fn demand(job: &Job) -> Demand {
    let component = |component: &Component| ComponentDemand {
        queue: component.queue.clone(),
        reservation: component.reservation().cloned(),
        alternatives: component.shape.alternatives.clone(),
    };
    Demand { components: job.components.iter().map(component).collect() }
}

/// When the last component of a run is over at the latest, as far as its walltime says: counted from its start, or until
/// then from when it got its resources. [`Timestamp::MAX`] if it has none, or is suspended: then its walltime stands still.
pub fn expected_end(job: &Job, run: &Run) -> Timestamp {
    if run.is_suspended() {
        return Timestamp::MAX;
    }
    pass::expected_end(&demand(job), &run.placement, run.started.unwrap_or(run.allocated))
}
