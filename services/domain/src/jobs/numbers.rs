//! How jobs are numbered: where numbers begin, and the numbers of tasks of arrays.

use super::State;
use muster_schemas::{JobId, job::JobSpec, resources::IndexSet};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The part of a state for numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Numbers {
    /// No job since it was set has a lower number; 0 before it was ever set.
    pub(crate) first: u64,
    /// Tasks of arrays from this number on have their own numbers; `None` before any had.
    pub(crate) tasks_from: Option<u64>,
    /// The tasks of each such array that the state knows, or knows a task of.
    pub(crate) arrays: BTreeMap<u64, TaskNumbers>,
}

/// Tasks of an array in the order of their indices, which is that of their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "IndexSet", into = "IndexSet")]
pub(crate) struct TaskNumbers {
    indices: IndexSet,
    /// How many tasks there are before each range of indices.
    before: Vec<u64>,
    total: u64,
}

impl From<IndexSet> for TaskNumbers {
    fn from(indices: IndexSet) -> Self {
        let mut total = 0;
        let mut before = Vec::with_capacity(indices.ranges().len());
        for (first, last) in indices.ranges() {
            before.push(total);
            total += u64::from(last - first) + 1;
        }
        Self { indices, before, total }
    }
}

impl From<TaskNumbers> for IndexSet {
    fn from(numbers: TaskNumbers) -> Self {
        numbers.indices
    }
}

impl TaskNumbers {
    /// How many tasks there are.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    pub(crate) const fn indices(&self) -> &IndexSet {
        &self.indices
    }

    /// How many tasks come before that of an index.
    fn position(&self, index: u32) -> Option<u64> {
        let at = self.indices.ranges().partition_point(|(first, _)| *first <= index).checked_sub(1)?;
        let (first, last) = self.indices.ranges()[at];
        (index <= last).then(|| self.before[at] + u64::from(index - first))
    }

    /// The index of the task that so many come before.
    fn index(&self, position: u64) -> Option<u32> {
        let at = self.before.partition_point(|before| *before <= position).checked_sub(1)?;
        let (first, last) = self.indices.ranges()[at];
        let index = u32::try_from(u64::from(first) + (position - self.before[at])).ok()?;
        (index <= last).then_some(index)
    }
}

/// How many numbers a job takes: one for each component, and of an array whose tasks are numbered one for each task.
pub(crate) fn numbers_taken(spec: &JobSpec, are_tasks_numbered: bool) -> u64 {
    let tasks = spec.array.as_ref().filter(|_| are_tasks_numbered).map_or(1, |array| array.indices.len());
    tasks.max(spec.components.len() as u64).max(1)
}

impl State {
    /// The number that the next job gets.
    pub fn next_job_number(&self) -> u64 {
        self.next_job.max(1)
    }

    /// No job since this was set has a lower number (SL-I-04).
    pub fn first_job_number(&self) -> u64 {
        self.numbers.first.max(1)
    }

    /// Tasks of arrays from this number on have their own numbers; `None` if none has.
    pub fn task_numbers_from(&self) -> Option<u64> {
        self.numbers.tasks_from
    }

    /// The own number of a job, an array or a task: that of the array for a task that has none (SL-C-18).
    pub fn number_of(&self, id: JobId) -> u64 {
        let position = |index| self.numbers.arrays.get(&id.number)?.position(index);
        id.number + id.index.and_then(position).unwrap_or(0)
    }

    /// The tasks of an array that have their own numbers: all of them, or none.
    pub fn numbered_tasks(&self, array: u64) -> Option<&IndexSet> {
        self.numbers.arrays.get(&array).map(TaskNumbers::indices)
    }

    /// The id that is meant: the own number of a task of an array, but for that of the first, which is the array's, stands for
    /// the task.
    pub fn id_meant(&self, id: JobId) -> JobId {
        if id.index.is_some() || self.jobs.contains_key(&id) {
            return id;
        }
        let Some((array, tasks)) = self.numbers.arrays.range(..=id.number).next_back() else { return id };
        tasks.index(id.number - array).filter(|_| *array < id.number).map_or(id, |index| JobId::task(*array, index))
    }

    /// The job or task that a number means; the number of a component means its job.
    pub fn job_of_number(&self, number: u64) -> Option<JobId> {
        let id = self.id_meant(JobId::job(number));
        match id.index {
            Some(_) => Some(id),
            None => self.job_of_component(number).map(|job| job.id),
        }
    }

    pub(crate) fn job_numbers_set(&mut self, first: u64) {
        self.numbers.first = first;
        self.next_job = self.next_job_number().max(first);
        self.numbers.tasks_from.get_or_insert(self.next_job);
    }

    /// Takes the numbers of a new job.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_tasks_are_found_both_ways() {
        for text in ["0", "0-3", "5", "1,3-5,9", "0-20:4", "7,4294967295"] {
            let indices: IndexSet = text.parse().unwrap();
            let numbers = TaskNumbers::from(indices.clone());
            assert_eq!(numbers.total(), indices.len());
            for (position, index) in (0..).zip(indices.iter()) {
                assert_eq!((numbers.position(index), numbers.index(position)), (Some(position), Some(index)), "{text}");
                assert_eq!((indices.position(index), indices.nth(position)), (Some(position), Some(index)), "{text}");
            }
            assert_eq!((numbers.index(numbers.total()), indices.nth(indices.len())), (None, None), "{text}");
            assert_eq!((numbers.position(6), indices.position(6)), (None, None), "{text}");
        }
    }
}
