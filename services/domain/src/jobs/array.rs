//! The tasks of an array that have not started, and those that are over.

use muster_schemas::{
    job::{Holds, Outcome},
    resources::IndexSet,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The tasks of an array. A task is a separate job from its first start until it is forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayState {
    /// The number of tasks submitted.
    pub tasks: u64,
    /// The tasks that have never started.
    pub remaining: IndexSet,
    /// The maximum number of tasks that run at a time.
    pub max_running: Option<u32>,
    /// Holds of single tasks that have never started.
    pub held: BTreeMap<u32, Holds>,
    /// Remaining tasks that can never start, because the task of the same index that they depend on did not succeed.
    pub impossible: IndexSet,
    /// The number of tasks with a run.
    pub running: u32,
    /// The number of tasks that have started and are not over, including those with a run.
    pub unfinished: u32,
    /// The finished tasks by outcome.
    pub outcomes: BTreeMap<Outcome, IndexSet>,
}

impl ArrayState {
    /// How many more tasks may run.
    pub fn headroom(&self) -> u32 {
        self.max_running.map_or(u32::MAX, |most| most.saturating_sub(self.running))
    }

    /// The tasks that succeeded.
    pub fn succeeded(&self) -> Option<&IndexSet> {
        self.outcomes.get(&Outcome::Completed)
    }

    /// The outcome of a task, if it is over.
    pub fn task_outcome(&self, index: u32) -> Option<&Outcome> {
        self.outcomes.iter().find(|(_, indices)| indices.contains(index)).map(|(outcome, _)| outcome)
    }

    /// The number of finished tasks.
    pub fn finished_tasks(&self) -> u64 {
        self.outcomes.values().map(IndexSet::len).sum()
    }

    /// Whether all tasks are over.
    pub fn is_over(&self) -> bool {
        self.remaining.is_empty() && self.unfinished == 0
    }

    /// The outcome of the whole array: success if every task succeeded, else the outcome of the lowest index that did
    /// not.
    pub fn outcome(&self) -> Outcome {
        let failed = self.outcomes.iter().filter(|(outcome, _)| !outcome.is_success());
        let first = failed.filter_map(|(outcome, indices)| Some((indices.first()?, outcome))).min();
        first.map_or(Outcome::Completed, |(_, outcome)| outcome.clone())
    }

    /// The outcome of the whole once these tasks are over too.
    pub(crate) fn outcome_with(&self, parts: &[(IndexSet, Outcome)]) -> Outcome {
        let mut with = Self { outcomes: self.outcomes.clone(), ..Self::default() };
        parts.iter().for_each(|(indices, outcome)| with.record_outcome(indices, outcome));
        with.outcome()
    }

    pub(crate) fn record_outcome(&mut self, indices: &IndexSet, outcome: &Outcome) {
        record(&mut self.outcomes, indices, outcome);
    }

    /// A finished task becomes unfinished again.
    pub(crate) fn take_back(&mut self, index: u32) {
        for indices in self.outcomes.values_mut() {
            indices.remove(index);
        }
        self.outcomes.retain(|_, indices| !indices.is_empty());
    }
}

fn record(outcomes: &mut BTreeMap<Outcome, IndexSet>, indices: &IndexSet, outcome: &Outcome) {
    match outcomes.get_mut(outcome) {
        None => {
            outcomes.insert(outcome.clone(), indices.clone());
        }
        Some(known) => match (indices.len(), indices.first()) {
            (1, Some(index)) => {
                known.insert(index);
            }
            _ => *known = known.union(indices),
        },
    }
}
