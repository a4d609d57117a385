//! What jobs have used up, against the budgets of associations and classes (SL-L-02).

use crate::{
    accounts::{Charge, Counter, rules::Amount},
    jobs::Job,
    runs::Run,
    state::State,
};
use muster_schemas::{JobId, Timestamp, resources::ComponentPlacement};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

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

    fn of_component(placed: &ComponentPlacement, milliseconds: u64) -> Self {
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

    /// Without another.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        self.each(other, u64::saturating_sub)
    }

    /// The part that counts for a budget of this amount, in seconds, rounded down; 0 for what is no use over time.
    pub fn seconds(&self, amount: Amount) -> u64 {
        let milliseconds = match amount {
            Amount::CoreSeconds => self.cores,
            Amount::NodeSeconds => self.nodes,
            Amount::GpuSeconds => self.gpus,
            Amount::RunSeconds => self.runs,
            _ => 0,
        };
        // What has no end is more than any budget.
        if milliseconds == u64::MAX { u64::MAX } else { milliseconds / 1_000 }
    }

    fn times(self, factor: f64) -> Self {
        self.each(Self::default(), |milliseconds, _| (milliseconds as f64 * factor) as u64)
    }
}

/// What ended runs used, as it counts at a moment. Nothing is counted unless limits are enforced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spent {
    at: Timestamp,
    of: BTreeMap<Counter, Spending>,
}

impl Spent {
    fn decay(&mut self, now: Timestamp, half_life_seconds: u64) {
        let factor = factor(now.micros_since(self.at), half_life_seconds);
        self.at = self.at.max(now);
        if factor < 1.0 {
            self.of.values_mut().for_each(|spending| *spending = spending.times(factor));
            self.of.retain(|_, spending| *spending != Spending::default());
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

impl State {
    /// Counts what a run used that ends now. Its last size counts for all of its time.
    pub(crate) fn count_spent(&mut self, id: JobId, run: &Run, now: Timestamp) {
        let settings = self.accounts.settings();
        let (is_counted, half_life) = (settings.limits, settings.usage_half_life_seconds);
        let Some(job) = self.jobs.get(&id).filter(|_| is_counted) else { return };
        let Some(started) = run.started else { return };
        let milliseconds = u64::try_from(now.micros_since(started)).unwrap_or(0) / 1_000;
        let mut spent = Vec::new();
        for (number, placed) in run.placement.components.iter().enumerate() {
            let spending = Spending::of_component(placed, milliseconds);
            spent.extend(self.budgets_of(job, number).into_iter().map(|counter| (counter, spending)));
        }
        self.spent.decay(now, half_life);
        for (counter, spending) in spent {
            let sum = self.spent.of.entry(counter).or_default();
            *sum = sum.and(spending);
        }
    }

    /// The counters that can have a budget and count a component, each once.
    fn budgets_of(&self, job: &Job, number: usize) -> BTreeSet<Counter> {
        let Some(component) = job.components.get(number) else { return BTreeSet::new() };
        let charge = Charge {
            account: component.account.clone(),
            user: job.owner.user.as_str().into(),
            class: component.class().cloned(),
            queue: component.queue.clone(),
        };
        let counters = self.accounts.rules(&charge).counters.into_iter();
        counters.filter(|counter| matches!(counter, Counter::Association(_) | Counter::Class(_))).collect()
    }

    /// What the ended jobs of a counter used, as it counts at a moment.
    pub fn spent(&self, counter: &Counter, now: Timestamp) -> Spending {
        let spent = self.spent.of.get(counter).copied().unwrap_or_default();
        let micros = now.micros_since(self.spent.at);
        spent.times(factor(micros, self.accounts.settings().usage_half_life_seconds))
    }
}
