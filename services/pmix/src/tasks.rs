//! How far the tasks of this node are, and whether others wait for one that is gone (SL-W-06, SL-W-08).

use std::collections::BTreeMap;

/// The tasks of a node.
#[derive(Debug)]
pub struct Tasks {
    stages: BTreeMap<u32, Stage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It may be no parallel program at all.
    Silent,
    Joined,
    Finalized,
    /// It has ended, and had never joined.
    Gone,
    /// It has ended otherwise.
    Ended,
}

/// A task that cannot come to a fence, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its rank.
    pub rank: u32,
    /// Why, for people.
    pub why: &'static str,
}

impl Tasks {
    /// Tasks of which nobody has joined.
    pub fn new(ranks: &[u32]) -> Self {
        Self { stages: ranks.iter().map(|rank| (*rank, Stage::Silent)).collect() }
    }

    /// A task has joined, possibly again.
    pub fn joined(&mut self, rank: u32) -> Option<Missing> {
        self.set(rank, Stage::Joined);
        self.missed()
    }

    /// A task is done with the others.
    pub fn finalized(&mut self, rank: u32) {
        self.set(rank, Stage::Finalized);
    }

    /// A task has ended.
    pub fn ended(&mut self, rank: u32) -> Option<Missing> {
        let stage = self.stages.get_mut(&rank)?;
        match std::mem::replace(stage, Stage::Ended) {
            Stage::Joined => return Some(Missing { rank, why: "it left without finalizing" }),
            Stage::Silent => *stage = Stage::Gone,
            Stage::Finalized | Stage::Gone | Stage::Ended => {}
        }
        self.missed()
    }

    fn set(&mut self, rank: u32, to: Stage) {
        if let Some(stage) = self.stages.get_mut(&rank) {
            *stage = to;
        }
    }

    /// The library counts tasks that never joined: whoever has joined waits for them in the first fence.
    fn missed(&self) -> Option<Missing> {
        self.stages.values().find(|stage| **stage == Stage::Joined)?;
        let (rank, _) = self.stages.iter().find(|(_, stage)| **stage == Stage::Gone)?;
        Some(Missing { rank: *rank, why: "it ended, and others wait for it" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SL-W-06
    #[test]
    fn a_task_that_ends_without_finalizing_is_missing() {
        let mut tasks = Tasks::new(&[4, 5]);
        assert_eq!((tasks.joined(4), tasks.joined(5)), (None, None));
        tasks.finalized(4);
        assert_eq!(tasks.ended(4), None);
        assert_eq!(tasks.ended(5), Some(Missing { rank: 5, why: "it left without finalizing" }));
    }

    /// SL-W-08
    #[test]
    fn nobody_waits_for_a_task_that_never_joined() {
        let missing = Some(Missing { rank: 1, why: "it ended, and others wait for it" });
        let mut tasks = Tasks::new(&[0, 1]);
        assert_eq!((tasks.ended(1), tasks.joined(0)), (None, missing));
        let mut tasks = Tasks::new(&[0, 1]);
        assert_eq!((tasks.joined(0), tasks.ended(1)), (None, missing));
    }

    #[test]
    fn programs_without_pmix_are_left_alone() {
        let mut tasks = Tasks::new(&[0, 1]);
        assert_eq!((tasks.ended(0), tasks.ended(1), tasks.ended(7)), (None, None, None));
    }
}
