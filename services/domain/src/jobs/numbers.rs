//! The first job number, and the numbers of tasks of arrays.

use muster_schemas::{job::JobSpec, resources::IndexSet};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The numbers of jobs and tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Numbers {
    /// The lowest number for jobs submitted since it was set; 0 if it was never set.
    pub(crate) first: u64,
    /// Tasks of arrays from this number on have their own numbers; `None` if no tasks have.
    pub(crate) tasks_from: Option<u64>,
    /// The tasks of each such array that has any job in the state.
    pub(crate) arrays: BTreeMap<u64, TaskNumbers>,
}

/// The tasks of an array, in the order of their indices and numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "IndexSet", into = "IndexSet")]
pub(crate) struct TaskNumbers {
    indices: IndexSet,
    /// The number of tasks before each range of indices.
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
    /// The number of tasks.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    pub(crate) const fn indices(&self) -> &IndexSet {
        &self.indices
    }

    /// The number of tasks before that with an index.
    pub(crate) fn position(&self, index: u32) -> Option<u64> {
        let at = self.indices.ranges().partition_point(|(first, _)| *first <= index).checked_sub(1)?;
        let (first, last) = self.indices.ranges()[at];
        (index <= last).then(|| self.before[at] + u64::from(index - first))
    }

    /// The index of the task with this number of tasks before it.
    pub(crate) fn index(&self, position: u64) -> Option<u32> {
        let at = self.before.partition_point(|before| *before <= position).checked_sub(1)?;
        let (first, last) = self.indices.ranges()[at];
        let index = u32::try_from(u64::from(first) + (position - self.before[at])).ok()?;
        (index <= last).then_some(index)
    }
}

/// How many numbers a job takes: one for each component, or one for each task of an array whose tasks are numbered.
pub(crate) fn numbers_taken(spec: &JobSpec, are_tasks_numbered: bool) -> u64 {
    let tasks = spec.array.as_ref().filter(|_| are_tasks_numbered).map_or(1, |array| array.indices.len());
    tasks.max(spec.components.len() as u64).max(1)
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
