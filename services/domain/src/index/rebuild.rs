//! The index of a whole state.

use crate::{accounts::load::Submitted, index::Index, sharing::Sharing, state::State, tasks::apply::task_keys};
use muster_schemas::{JobId, Timestamp};
use std::collections::BTreeSet;

impl State {
    /// Rebuilds the index after the rest of the state was replaced.
    pub(crate) fn rebuild_index(&mut self) {
        self.index = Index::of(self);
    }
}

impl Index {
    /// The index of a whole state.
    pub(crate) fn of(state: &State) -> Self {
        let passing = state.queues().filter(|queue| queue.spec.route.is_some());
        let passing = passing.map(|queue| (queue.spec.name.as_str().into(), BTreeSet::new())).collect();
        let mut index = Self { passing, ..Self::default() };
        for job in state.jobs() {
            index.add_job(job);
        }
        for run in state.runs() {
            index.move_run(run.id, None, run.due());
            index.lent.extend(run.has_lent().then_some(run.id));
            index.sharing.extend(state.job(run.job).and_then(Sharing::of).map(|_| run.id));
            let opens = state.job(run.job).is_some_and(|job| job.opens_domain().is_some());
            index.openers.extend(opens.then_some(run.id));
        }
        for id in index.elastic.clone() {
            index.move_tasks(id, task_keys(state, id));
        }
        for node in state.nodes() {
            index.node_names.insert(node.spec.name.clone(), node.id);
            index.closures_due.extend(node.closure_due().map(|time| (time, node.id)));
        }
        for (name, reservation) in &state.planning.reservations {
            index.add_reservation(name, reservation);
        }
        let ready = |id: &JobId| state.job(*id).is_some_and(|job| state.staging_now(job).is_some());
        index.staging_ready = index.to_stage.iter().copied().filter(ready).collect();
        index.count_submitted(state);
        index
    }

    /// A queue passes jobs on from now on, these wait in it; or, without jobs, it no longer does.
    pub(crate) fn note_passing(&mut self, name: &str, jobs: Option<BTreeSet<(Timestamp, JobId)>>) {
        match jobs {
            Some(jobs) => drop(self.passing.insert(name.into(), jobs)),
            None => drop(self.passing.remove(name)),
        }
    }

    /// Recounts the waiting and running jobs, as far as they are limited.
    pub(crate) fn count_submitted(&mut self, state: &State) {
        self.submitted = Submitted::default();
        for load in state.jobs().filter_map(|job| Submitted::load(&state.accounts, job)) {
            self.submitted.add(&state.accounts, &load);
        }
    }
}
