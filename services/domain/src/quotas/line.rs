//! What a counter holds from each moment on.

use muster_schemas::Timestamp;
use std::{collections::BTreeMap, ops::Bound};

/// What jobs hold together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub cores: u64,
    pub jobs: u64,
    /// Cores times the whole walltime. A run without a walltime has an enormous one.
    pub core_seconds: u128,
}

impl Sum {
    pub fn plus(self, other: Self) -> Self {
        Self {
            cores: self.cores.saturating_add(other.cores),
            jobs: self.jobs.saturating_add(other.jobs),
            core_seconds: self.core_seconds.saturating_add(other.core_seconds),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            cores: self.cores.saturating_sub(other.cores),
            jobs: self.jobs.saturating_sub(other.jobs),
            core_seconds: self.core_seconds.saturating_sub(other.core_seconds),
        }
    }
}

/// The sum from each moment on until the next; nothing before the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line(BTreeMap<Timestamp, Sum>);

impl Line {
    /// Something is held in `[from, until)`.
    pub fn add(&mut self, from: Timestamp, until: Timestamp, sum: Sum) {
        self.change(from, until, |level| level.plus(sum));
    }

    /// The same is not held after all.
    pub fn remove(&mut self, from: Timestamp, until: Timestamp, sum: Sum) {
        self.change(from, until, |level| level.minus(sum));
        for at in [from, until] {
            let before = self.before(at);
            if self.0.get(&at) == Some(&before) {
                self.0.remove(&at);
            }
        }
    }

    fn change(&mut self, from: Timestamp, until: Timestamp, change: impl Fn(Sum) -> Sum) {
        if from >= until {
            return;
        }
        for at in [from, until] {
            let level = self.at(at);
            self.0.entry(at).or_insert(level);
        }
        self.0.range_mut(from..until).for_each(|(_, level)| *level = change(*level));
    }

    /// The sum at a moment.
    pub fn at(&self, at: Timestamp) -> Sum {
        self.0.range(..=at).next_back().map_or_else(Sum::default, |(_, level)| *level)
    }

    fn before(&self, at: Timestamp) -> Sum {
        self.0.range(..at).next_back().map_or_else(Sum::default, |(_, level)| *level)
    }

    /// The changes after a moment, each with the sum from then on.
    pub fn after(&self, at: Timestamp) -> impl Iterator<Item = (Timestamp, Sum)> + '_ {
        self.0.range((Bound::Excluded(at), Bound::Unbounded)).map(|(at, level)| (*at, *level))
    }

    /// The last change with a known date.
    pub fn last(&self) -> Option<Timestamp> {
        self.0.range(..Timestamp::MAX).next_back().map(|(at, _)| *at)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(cores: u64) -> Sum {
        Sum { cores, jobs: 1, core_seconds: u128::from(cores) }
    }

    proptest! {
        /// At every moment a line has the sum of what is held then, and it is empty once nothing is held.
        #[test]
        fn a_line_is_the_sum_of_what_is_held(held in prop::collection::vec((0_i64..20, 0_i64..20, 0_u64..5), 0..12)) {
            let mut line = Line::default();
            let held: Vec<_> = held.into_iter().map(|(from, length, cores)| (from, from + length, sum(cores))).collect();
            for (left, (from, until, added)) in held.iter().enumerate() {
                line.add(Timestamp(*from), Timestamp(*until), *added);
                for at in 0..40 {
                    let there = held[..=left].iter().filter(|(from, until, _)| *from <= at && at < *until);
                    let expected = there.fold(Sum::default(), |all, (.., sum)| all.plus(*sum));
                    prop_assert_eq!(line.at(Timestamp(at)), expected);
                }
            }
            for (from, until, added) in &held {
                line.remove(Timestamp(*from), Timestamp(*until), *added);
            }
            prop_assert!(line.is_empty(), "{:?}", line);
        }
    }
}
