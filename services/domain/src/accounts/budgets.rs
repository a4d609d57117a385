//! The budgets of associations and classes: which there are, and what runs add to their use (SL-L-02).

use super::{Charge, Counter, spent::Spending};
use crate::{jobs::Job, runs::Run, state::State};
use muster_schemas::{
    JobId, Timestamp,
    accounts::{AccountChange, Budget},
    resources::ComponentPlacement,
};
use std::collections::BTreeSet;

fn milliseconds(from: Timestamp, until: Timestamp) -> u64 {
    u64::try_from(until.micros_since(from)).unwrap_or(0) / 1_000
}

impl State {
    /// Notes the budgets that a change brings or takes away. What was used of one that is changed still counts.
    pub(crate) fn budgets_changed(&mut self, change: &AccountChange) {
        let of = |budget: Budget| budget != Budget::default();
        match change {
            AccountChange::Association { before, after } => {
                for key in before.iter().map(|spec| spec.of.clone()).chain(after.iter().map(|spec| spec.of.clone())) {
                    let has_budget = after.as_ref().is_some_and(|spec| spec.of == key && of(spec.limits.budget));
                    self.spent.set_budget(Counter::Association(key), has_budget);
                }
            }
            AccountChange::Class { before, after } => {
                for name in before.iter().chain(after).map(|spec| spec.name.clone()) {
                    let has_budget = after.as_ref().is_some_and(|spec| spec.name == name && of(spec.limits.budget));
                    self.spent.set_budget(Counter::Class(name), has_budget);
                }
            }
            AccountChange::Account { .. }
            | AccountChange::User { .. }
            | AccountChange::AssociationUse { .. }
            | AccountChange::ClassUse { .. } => {}
        }
    }

    /// Lets what was used count less at a moment, before the half-life changes.
    pub(crate) fn forget_spent(&mut self, now: Timestamp) {
        let half_life = self.accounts.settings().usage_half_life_seconds;
        if !self.spent.has_none() {
            self.spent.decay(now, half_life);
        }
    }

    /// Counts what a run used that ends now. The last size of each component counts for all of its time.
    pub(crate) fn count_spent(&mut self, id: JobId, run: &Run, now: Timestamp) {
        if self.spent.has_none() {
            return;
        }
        let Some(job) = self.jobs.get(&id) else { return };
        let Some(started) = run.started else { return };
        let over: Vec<(u32, &ComponentPlacement, Timestamp)> =
            job.components_over().map(|(number, over)| (number, &over.placement, over.at)).collect();
        let mut spent = Vec::new();
        for (number, placed) in (0..).zip(&run.placement.components) {
            // A component that ended alone has given its resources back.
            let alone = over.iter().find(|(component, ..)| *component == number);
            let (placed, until) = alone.map_or((placed, now), |(_, placed, at)| (*placed, *at));
            let spending = Spending::of_component(placed, milliseconds(started, until));
            spent.extend(self.counters_of(job, number as usize).into_iter().map(|counter| (counter, spending)));
        }
        self.forget_spent(now);
        spent.iter().for_each(|(counter, spending)| self.spent.add(counter, *spending));
    }

    /// The counters of associations and classes that count a component, each once.
    fn counters_of(&self, job: &Job, number: usize) -> BTreeSet<Counter> {
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

    /// What the ended jobs of a counter used of its budget, as it counts at a moment.
    pub fn spent(&self, counter: &Counter, now: Timestamp) -> Spending {
        self.spent.at(counter, now, self.accounts.settings().usage_half_life_seconds)
    }
}
