//! Planned hits on chains of filters, and a count of those that hit.

use super::{
    chains::{Chains, Phase},
    ledger::Crash,
};
use rand::{Rng, rngs::SmallRng};

/// Stops that hit a chain of filters, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kills {
    /// Stops of a runner with a call: it had claimed it, made it, or reported on it, and had no answer yet.
    pub of_runners: u64,
    /// Stops of anything else during a rollback.
    pub in_rollback: u64,
    /// Stops of anything else during an activation chain, without a rollback.
    pub in_activation: u64,
    /// Stops of anything else during submission chains only.
    pub in_submission: u64,
}

impl Kills {
    /// The total number.
    pub const fn total(&self) -> u64 {
        self.of_runners + self.in_rollback + self.in_activation + self.in_submission
    }

    pub(super) fn add(&mut self, other: Self) {
        self.of_runners += other.of_runners;
        self.in_rollback += other.in_rollback;
        self.in_activation += other.in_activation;
        self.in_submission += other.in_submission;
    }

    /// Counts a stop of anything but a runner: for the phase that was aimed at, otherwise for the rarest current phase.
    pub(super) fn count(&mut self, chains: &Chains, aimed_at: Option<Phase>) {
        let is_under_way = |phase: &Phase| chains.phases().any(|open| open == *phase);
        match aimed_at.filter(is_under_way).or_else(|| chains.phases().max()) {
            Some(Phase::Rollback) => self.in_rollback += 1,
            Some(Phase::Activation) => self.in_activation += 1,
            Some(Phase::Submission) => self.in_submission += 1,
            None => {}
        }
    }
}

/// The progress of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A runner has claimed it and waits for the answer.
    Claimed,
    /// The runner makes it.
    Made,
    /// The runner has reported on it and waits for the answer.
    Reported,
}

/// The kind of the next hit at a phase.
#[derive(Clone, Copy, Debug)]
pub(super) enum Blow {
    /// The ledger stops in the round that decides on a claim of such a call, or on a report.
    Round(Crash),
    /// Something stops soon after such a call has reached a step.
    Soon(Step, Victim),
}

/// The part of the system that stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Victim {
    Ledger,
    Planner,
    Executor,
    /// The runner that has the call.
    Runner,
}

impl Blow {
    pub(super) fn any(random: &mut SmallRng) -> Self {
        let step = [Step::Claimed, Step::Made, Step::Reported][random.random_range(0..3)];
        match random.random_range(0..16) {
            0..=6 => Self::Round(Crash::any(random)),
            7..=8 => Self::Soon(step, Victim::Ledger),
            9 => Self::Soon(step, Victim::Planner),
            10 => Self::Soon(step, Victim::Executor),
            _ => Self::Soon(step, Victim::Runner),
        }
    }
}
