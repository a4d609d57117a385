//! Assigning and forgetting job numbers.

use crate::{jobs::numbers::numbers_taken, state::State};
use muster_schemas::{JobId, job::JobSpec};

impl State {
    pub(crate) fn job_numbers_set(&mut self, first: u64) {
        self.numbers.first = first;
        self.next_job = self.next_job_number().max(first);
        self.numbers.tasks_from.get_or_insert(self.next_job);
    }

    /// Assigns the numbers of a new job.
    pub(crate) fn take_numbers(&mut self, id: JobId, spec: &JobSpec) {
        let are_tasks_numbered = self.numbers.tasks_from.is_some();
        let taken = numbers_taken(spec, are_tasks_numbered);
        self.next_job = self.next_job.max(id.number.saturating_add(taken));
        if let Some(array) = spec.array.as_ref().filter(|_| are_tasks_numbered) {
            self.numbers.arrays.insert(id.number, array.indices.clone().into());
        }
    }

    /// Forgets the numbers of tasks once no job of their array is left.
    pub(crate) fn forget_numbers(&mut self, number: u64) {
        if self.numbers.arrays.contains_key(&number) && self.job_with_tasks(number).next().is_none() {
            self.numbers.arrays.remove(&number);
        }
    }
}
