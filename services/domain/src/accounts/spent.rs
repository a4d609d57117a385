//! What jobs have used up, against the budgets of associations and classes (SL-L-02).

use super::rules::{Amount, Counter};
use muster_schemas::{Timestamp, resources::ComponentPlacement};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Use over time, in milliseconds: seconds would lose jobs that are shorter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    cores: u64,
    nodes: u64,
    gpus: u64,
    runs: u64,
}

impl Spending {
    /// What a component uses that holds this much for a time. A component without nodes uses nothing.
    pub fn of(cores: u64, nodes: u64, gpus: u64, milliseconds: u64) -> Self {
        Self {
            cores: cores.saturating_mul(milliseconds),
            nodes: nodes.saturating_mul(milliseconds),
            gpus: gpus.saturating_mul(milliseconds),
            runs: if nodes == 0 { 0 } else { milliseconds },
        }
    }

    pub(super) fn of_component(placed: &ComponentPlacement, milliseconds: u64) -> Self {
        let cores = placed.shares.iter().map(|share| share.cores.len()).sum();
        let gpus = placed.shares.iter().map(|share| share.gpus.len()).sum();
        Self::of(cores, placed.shares.len() as u64, gpus, milliseconds)
    }

    fn each(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            cores: with(self.cores, other.cores),
            nodes: with(self.nodes, other.nodes),
            gpus: with(self.gpus, other.gpus),
            runs: with(self.runs, other.runs),
        }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    /// Without the times for which jobs run.
    #[must_use]
    pub fn without_runs(self) -> Self {
        Self { runs: 0, ..self }
    }

    /// Without another.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        self.each(other, u64::saturating_sub)
    }

    /// The part that counts for a budget of this amount, in seconds, rounded down; 0 for what is no use over time.
    pub fn seconds(&self, amount: Amount) -> u64 {
        let milliseconds = match amount {
            Amount::CoreSeconds | Amount::CoreSecondsLeft => self.cores,
            Amount::NodeSeconds | Amount::NodeSecondsLeft => self.nodes,
            Amount::GpuSeconds | Amount::GpuSecondsLeft => self.gpus,
            Amount::RunSeconds => self.runs,
            _ => 0,
        };
        // A use without an end is more than any budget.
        if milliseconds == u64::MAX { u64::MAX } else { milliseconds / 1_000 }
    }

    fn times(self, factor: f64) -> Self {
        self.each(Self::default(), |milliseconds, _| (milliseconds as f64 * factor) as u64)
    }
}

/// What ended runs used of each budget, as it counts at a moment. A counter is in it exactly if it has a budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spent {
    at: Timestamp,
    of: BTreeMap<Counter, Spending>,
}

impl Spent {
    /// Notes whether a counter has a budget. A new one begins with nothing used.
    pub(super) fn set_budget(&mut self, of: Counter, has_budget: bool) {
        match has_budget {
            true => drop(self.of.entry(of).or_default()),
            false => drop(self.of.remove(&of)),
        }
    }

    /// Forgets what was used of some budgets.
    pub(super) fn forget(&mut self, is_forgotten: impl Fn(&Counter) -> bool) {
        let all = self.of.iter_mut().filter(|(counter, _)| is_forgotten(counter));
        all.for_each(|(_, spending)| *spending = Spending::default());
    }

    pub(super) fn has_none(&self) -> bool {
        self.of.is_empty()
    }

    /// Adds what a run used that ended at the moment of the last decay, if the counter has a budget.
    pub(super) fn add(&mut self, of: &Counter, spending: Spending) {
        if let Some(sum) = self.of.get_mut(of) {
            *sum = sum.and(spending);
        }
    }

    /// The use of a counter as it counts at a moment.
    pub(super) fn at(&self, counter: &Counter, now: Timestamp, half_life_seconds: u64) -> Spending {
        let spent = self.of.get(counter).copied().unwrap_or_default();
        spent.times(factor(now.micros_since(self.at), half_life_seconds))
    }

    pub(super) fn decay(&mut self, now: Timestamp, half_life_seconds: u64) {
        let factor = factor(now.micros_since(self.at), half_life_seconds);
        self.at = self.at.max(now);
        if factor < 1.0 {
            self.of.values_mut().for_each(|spending| *spending = spending.times(factor));
        }
    }
}

/// The part of old use that counts after a time; a half-life of 0 means all of it. The same on every machine, which the
/// functions of the platform are not.
pub(super) fn factor(micros: i64, half_life_seconds: u64) -> f64 {
    match micros <= 0 || half_life_seconds == 0 {
        true => 1.0,
        false => libm::exp2(-(micros as f64) / (half_life_seconds as f64 * 1e6)),
    }
}
