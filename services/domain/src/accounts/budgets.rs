//! The budgets of associations and classes: what runs add to their use (SL-L-02).

use super::{Charge, Counter, spent::Spending};
use crate::{jobs::Job, runs::Run, state::State};
use muster_schemas::{JobId, Timestamp};
use std::collections::BTreeSet;

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
        spent.into_iter().for_each(|(counter, spending)| self.spent.add(counter, spending));
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
        self.spent.at(counter, now, self.accounts.settings().usage_half_life_seconds)
    }
}
