//! The limits of accounts and service classes. Nothing is counted unless they are enforced.

use super::{Part, Usage, Wanted, parts};
use crate::model::{Demand, Holder};
use muster_domain::accounts::{Accounts, Amount, Charge, Counter, Rule, Rules, Spending};
use muster_schemas::views::LimitView;
use std::{borrow::Cow, collections::HashMap, sync::Arc};

/// Limits of accounts, and their present use.
#[derive(Clone, Debug, Default)]
pub(super) struct AccountLimits {
    accounts: Arc<Accounts>,
    /// Jobs mostly belong to few users, so their limits are looked up once.
    known: HashMap<Charge, Arc<Numbered>>,
    numbers: HashMap<Counter, usize>,
    /// By the number of the counter.
    used: Vec<Usage>,
    /// What running jobs use if they run for all of their walltime, by the number of the counter.
    committed: Vec<Spending>,
    /// What ended jobs used, by the number of each counter with a budget, which most clusters do not have.
    spent: HashMap<usize, Spending>,
    /// What running jobs have used already of what was committed, by the number of each counter with a limit on what is
    /// left to them.
    elapsed: HashMap<usize, Spending>,
}

/// The counters and limits of a component, with numbers for the counters.
#[derive(Clone, Debug, Default)]
struct Numbered {
    counters: Vec<usize>,
    rules: Vec<(Option<usize>, Rule)>,
}

impl AccountLimits {
    pub fn new(accounts: Arc<Accounts>) -> Self {
        Self { accounts, ..Self::default() }
    }

    /// The classes whose runs make way for a job.
    pub fn preempted_by(&self, holder: &Holder) -> Vec<&str> {
        match holder.charges.is_empty() {
            true => self.accounts.preempted_by(std::iter::once(None)),
            false => self.accounts.preempted_by(holder.charges.iter().map(|charge| charge.class.as_deref())),
        }
    }

    /// Whether anything is limited.
    pub fn is_enforced(&self) -> bool {
        self.accounts.settings().limits
    }

    pub fn prepare(&mut self, charge: impl FnOnce() -> Charge) {
        if self.is_enforced() {
            self.find(charge());
        }
    }

    pub fn begin(&mut self, charge: impl FnOnce() -> Charge, usage: &Usage) {
        if self.is_enforced() {
            let found = self.find(charge());
            found.counters.iter().for_each(|counter| {
                self.used[*counter].add(usage);
                self.commit(*counter, usage, Spending::and);
            });
        }
    }

    pub fn end(&mut self, charge: impl FnOnce() -> Charge, usage: &Usage) {
        if self.is_enforced() {
            let found = self.find(charge());
            found.counters.iter().for_each(|counter| {
                self.used[*counter].subtract(usage);
                self.commit(*counter, usage, Spending::without);
            });
        }
    }

    /// A run without an end can only have begun before the budget was set: what it used counts when it ends.
    fn commit(&mut self, counter: usize, usage: &Usage, change: impl Fn(Spending, Spending) -> Spending) {
        if usage.walltime_seconds != u64::MAX {
            self.committed[counter] = change(self.committed[counter], usage.spending());
        }
    }

    /// Tells what ended jobs have used of the budgets.
    pub fn set_spent(&mut self, spent: impl Fn(&Counter) -> Spending) {
        if self.spent.is_empty() {
            return;
        }
        for (counter, number) in &self.numbers {
            if let Some(known) = self.spent.get_mut(number) {
                *known = spent(counter);
            }
        }
    }

    /// Whether anything limits what is left to running jobs.
    pub fn limits_rest(&self) -> bool {
        !self.elapsed.is_empty()
    }

    /// Nothing has elapsed of any run, before [`Self::elapse`] tells what has.
    pub fn reset_elapsed(&mut self) {
        self.elapsed.values_mut().for_each(|elapsed| *elapsed = Spending::default());
    }

    /// A part of a component's walltime is over.
    pub fn elapse(&mut self, charge: Charge, elapsed: Spending) {
        for counter in &self.find(charge).counters {
            if let Some(sum) = self.elapsed.get_mut(counter) {
                *sum = sum.and(elapsed);
            }
        }
    }

    /// Whether a limit may let a job start later although nothing happens: old use counts ever less, and less is left to
    /// running jobs.
    pub fn forgets(&self) -> bool {
        !self.spent.is_empty() && self.accounts.settings().usage_half_life_seconds > 0 || self.limits_rest()
    }

    fn find(&mut self, charge: Charge) -> Arc<Numbered> {
        if let Some(known) = self.known.get(&charge) {
            return known.clone();
        }
        let Rules { counters, rules, .. } = self.accounts.rules(&charge);
        let numbers = counters.into_iter().map(|counter| self.number(counter)).collect();
        // Limits that include waiting jobs were checked at submission.
        let rules = rules.into_iter().filter(|rule| rule.amount != Amount::Jobs);
        let rules: Vec<(Option<usize>, Rule)> =
            rules.map(|rule| (rule.counter.clone().map(|counter| self.number(counter)), rule)).collect();
        let budgets = rules.iter().filter(|(_, rule)| rule.amount.is_budget()).filter_map(|(counter, _)| *counter);
        budgets.for_each(|counter| {
            self.spent.entry(counter).or_default();
        });
        let left = rules.iter().filter(|(_, rule)| rule.amount.is_left()).filter_map(|(counter, _)| *counter);
        left.for_each(|counter| {
            self.elapsed.entry(counter).or_default();
        });
        let found = Arc::new(Numbered { counters: numbers, rules });
        self.known.insert(charge, found.clone());
        found
    }

    fn number(&mut self, counter: Counter) -> usize {
        let next = self.used.len();
        let number = *self.numbers.entry(counter).or_insert(next);
        if number == next {
            self.used.push(Usage::default());
            self.committed.push(Spending::default());
        }
        number
    }

    /// What counts for a budget of a counter or for a limit on what is left, and what a job would add. Components that grow
    /// use more until the end of their walltime.
    fn over_time(
        &self,
        (counter, amount): (usize, Amount),
        holder: &Holder,
        demand: &Demand,
        more: &[Usage],
        held: &[Usage],
    ) -> [Spending; 2] {
        let committed = self.committed[counter];
        let used = match amount.is_left() {
            true => committed.without(self.elapsed.get(&counter).copied().unwrap_or_default()),
            false => committed.and(self.spent.get(&counter).copied().unwrap_or_default()),
        };
        let counts = |part: &Part<'_>| self.known(part).counters.contains(&counter);
        let wanted = parts(holder, demand, more).filter(counts).map(|part| match held.get(part.number) {
            Some(held) => Usage { walltime_seconds: held.walltime_seconds, ..*part.usage }.spending().without_runs(),
            None => part.usage.spending(),
        });
        [used, wanted.fold(Spending::default(), Spending::and)]
    }

    /// The knowledge about a component; a job that was never prepared has no known limits.
    fn known(&self, part: &Part) -> Cow<'_, Arc<Numbered>> {
        let known = self.known.get(&part.charge());
        known.map_or_else(|| Cow::Owned(Arc::default()), Cow::Borrowed)
    }

    /// The limit, for people, that keeps components from using this much in addition to their holdings.
    pub fn reached(&self, holder: &Holder, demand: &Demand, more: &[Usage], held: &[Usage]) -> Option<String> {
        let is_reached = |limit: &LimitView| limit.used.saturating_add(limit.wanted) > limit.most;
        let mut reached = None;
        self.each(holder, demand, more, held, |limit| {
            if reached.is_none() && is_reached(&limit.numbers()) {
                reached = Some(limit.rule.to_string());
            }
        });
        reached
    }

    /// All limits of a job: how much is in use, and how much the job would add.
    pub fn applying(&self, holder: &Holder, demand: &Demand, more: &[Usage]) -> Vec<LimitView> {
        let mut applying: Vec<LimitView> = Vec::new();
        self.each(holder, demand, more, &[], |limit| {
            let view = LimitView { text: limit.rule.to_string(), ..limit.numbers() };
            if !applying.contains(&view) {
                applying.push(view);
            }
        });
        applying
    }

    fn each(&self, holder: &Holder, demand: &Demand, more: &[Usage], held: &[Usage], mut see: impl FnMut(Applied<'_>)) {
        if !self.is_enforced() {
            return;
        }
        let mut wanted = Wanted(Vec::new());
        for part in parts(holder, demand, more) {
            self.known(&part).counters.iter().for_each(|counter| wanted.add(*counter, part.usage));
        }
        for part in parts(holder, demand, more) {
            for (counter, rule) in &self.known(&part).rules {
                let (used, wanted) = match counter {
                    None => (held.get(part.number).copied().unwrap_or_default(), *part.usage),
                    Some(counter) => {
                        let wanted = wanted.0.iter().find(|(known, _)| known == counter);
                        (self.used[*counter], wanted.map_or_else(Usage::default, |(_, wanted)| *wanted))
                    }
                };
                let summed = counter.filter(|_| rule.amount.is_budget() || rule.amount.is_left());
                let over_time = summed
                    .map(|counter| self.over_time((counter, rule.amount), holder, demand, more, held))
                    .unwrap_or_default();
                see(Applied { rule, used, wanted, over_time, walltime_seconds: part.usage.walltime_seconds });
            }
        }
    }
}

/// A limit, and the use that counts for it.
struct Applied<'a> {
    rule: &'a Rule,
    used: Usage,
    wanted: Usage,
    /// For a budget and a limit on what is left: what counts, and what the job would add.
    over_time: [Spending; 2],
    /// The component's walltime.
    walltime_seconds: u64,
}

impl Applied<'_> {
    /// Without the text.
    fn numbers(&self) -> LimitView {
        let Self { rule, used, wanted, over_time: [spent, more], walltime_seconds } = self;
        let (used, wanted) = match rule.amount {
            Amount::RunningJobs => (used.jobs, wanted.jobs),
            Amount::Cores => (used.cores, wanted.cores),
            Amount::Nodes => (used.nodes, wanted.nodes),
            Amount::Gpus => (used.gpus, wanted.gpus),
            Amount::MemoryBytes => (used.memory_bytes, wanted.memory_bytes),
            Amount::WalltimeSeconds => (0, *walltime_seconds),
            Amount::Jobs => (0, 0),
            Amount::CoreSeconds
            | Amount::NodeSeconds
            | Amount::GpuSeconds
            | Amount::RunSeconds
            | Amount::CoreSecondsLeft
            | Amount::NodeSecondsLeft
            | Amount::GpuSecondsLeft => (spent.seconds(rule.amount), more.seconds(rule.amount)),
        };
        LimitView { text: String::new(), used, wanted, most: rule.most }
    }
}
