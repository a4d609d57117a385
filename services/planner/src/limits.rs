//! Limits on simultaneous use: those of queues, of the policy, and of accounts and classes.
//!
//! Each component of a job counts as one job, for its own queue, account and class (SL-L-01). Since they start together
//! or not at all, each limit applies to what they use together.

mod accounts;
mod asked;
mod gates;
mod rules;
mod usage;

pub(crate) use gates::Found;
pub(crate) use usage::{Usage, Uses, Ways, is_one_shut};

use crate::model::{Demand, Holder};
use accounts::AccountLimits;
use asked::{Asked, Attributes};
use muster_domain::accounts::{Accounts, Counter as Budgeted, Spending};
use muster_schemas::{cluster::QueueSpec, policy::Limit, views::LimitView};
use rules::{Counter, describe, name};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use usage::{Part, Wanted, parts};

/// The limits of a policy, of accounts and of classes, and what is in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    rules: Vec<Limit>,
    used: HashMap<Counter, Usage>,
    accounts: AccountLimits,
    /// What running jobs have asked for, by the limits that count it.
    asked: Asked,
}

impl Limits {
    pub fn new(rules: Vec<Limit>) -> Self {
        Self { asked: Asked::new(&rules), rules, ..Self::default() }
    }

    /// Sets the accounts and classes whose limits apply. Nothing may be in use yet.
    pub fn set_accounts(&mut self, accounts: Arc<Accounts>) {
        self.accounts = AccountLimits::new(accounts);
    }

    /// Tells what ended jobs have used of the budgets of accounts and classes.
    pub fn set_spent(&mut self, spent: impl Fn(&Budgeted) -> Spending) {
        self.accounts.set_spent(spent);
    }

    /// Whether anything limits what is left to running jobs until the end of their walltimes.
    pub fn limits_rest(&self) -> bool {
        self.accounts.limits_rest()
    }

    /// Nothing has elapsed of any run, before [`Self::elapse`] tells what has.
    pub fn reset_elapsed(&mut self) {
        self.accounts.reset_elapsed();
    }

    /// A run has lasted for some time.
    pub fn elapse(&mut self, holder: &Holder, demand: &Demand, uses: &[Usage], seconds: u64) {
        for part in parts(holder, demand, uses).filter(|part| part.usage.walltime_seconds != u64::MAX) {
            let walltime_seconds = part.usage.walltime_seconds.min(seconds);
            self.accounts.elapse(part.charge(), Usage { walltime_seconds, ..*part.usage }.spending());
        }
    }

    /// Whether a limit may let a job start later although nothing happens.
    pub fn forgets(&self) -> bool {
        self.accounts.forgets()
    }

    /// The classes whose runs make way for a job.
    pub fn preempted_by(&self, holder: &Holder) -> Vec<&str> {
        self.accounts.preempted_by(holder)
    }

    /// Whether there is any limit.
    pub fn has_any(&self, specs: &BTreeMap<Arc<str>, QueueSpec>) -> bool {
        let is_limited = |queue: &QueueSpec| queue.max_running_jobs.or(queue.max_running_jobs_per_user).is_some();
        !self.rules.is_empty() || self.accounts.is_enforced() || specs.values().any(is_limited)
    }

    /// Looks up the limits of a waiting job, so that they are known whenever it is asked for.
    pub fn prepare(&mut self, holder: &Holder, demand: &Demand) {
        let usage = Usage::default();
        for (number, demand) in demand.components.iter().enumerate() {
            self.accounts.prepare(|| Part { holder, number, demand, usage: &usage }.charge());
        }
    }

    /// The components of a job begin to use this much.
    pub fn begin(&mut self, holder: &Holder, demand: &Demand, uses: &[Usage], attributes: Attributes<'_>) {
        self.asked.count(&self.rules, holder, demand, attributes, 1);
        for part in parts(holder, demand, uses) {
            for counter in self.counters(&part) {
                self.used.entry(counter).or_default().add(part.usage);
            }
            self.accounts.begin(|| part.charge(), part.usage);
        }
    }

    /// The components of a job no longer use this much.
    pub fn end(&mut self, holder: &Holder, demand: &Demand, uses: &[Usage], attributes: Attributes<'_>) {
        self.asked.count(&self.rules, holder, demand, attributes, -1);
        for part in parts(holder, demand, uses) {
            for counter in self.counters(&part) {
                if let Some(sum) = self.used.get_mut(&counter) {
                    sum.subtract(part.usage);
                    if *sum == Usage::default() {
                        self.used.remove(&counter);
                    }
                }
            }
            self.accounts.end(|| part.charge(), part.usage);
        }
    }

    fn counters(&self, part: &Part) -> Vec<Counter> {
        let rules = self.rules.iter().enumerate();
        let of_policy = rules.filter_map(|(number, rule)| Some(Counter::Policy(number, name(rule, part)?)));
        let queue = &part.demand.queue;
        let of_queue = [Counter::Queue(queue.clone()), Counter::UserInQueue(queue.clone(), part.holder.user.clone())];
        of_policy.chain(of_queue).collect()
    }

    /// What a job would use, by the limits of the policy that count it.
    fn wanted(&self, holder: &Holder, demand: &Demand, more: &[Usage]) -> Wanted<Counter> {
        let mut wanted = Wanted(Vec::new());
        for part in parts(holder, demand, more) {
            for (number, rule) in self.rules.iter().enumerate() {
                if let Some(name) = name(rule, &part) {
                    wanted.add(Counter::Policy(number, name), part.usage);
                }
            }
        }
        wanted
    }

    fn used(&self, counter: &Counter) -> Usage {
        self.used.get(counter).copied().unwrap_or_default()
    }

    /// The limit, for people, that keeps a job from using this much more.
    pub fn reached(
        &self,
        holder: &Holder,
        demand: &Demand,
        more: &[Usage],
        specs: &BTreeMap<Arc<str>, QueueSpec>,
    ) -> Option<String> {
        let in_queues = wanted_in_queues(holder, demand, more, specs);
        let in_queues = in_queues.0.iter().find_map(|(counter, more)| self.reached_in_queue(counter, more, specs));
        let of_policy = || {
            let wanted = self.wanted(holder, demand, more);
            wanted.0.iter().find_map(|(counter, more)| self.reached_of_policy(counter, more))
        };
        in_queues.or_else(of_policy).or_else(|| self.accounts.reached(holder, demand, more, &[]))
    }

    /// All limits that count a job, whether they hold it or not: how much they count, and how much the job would add.
    pub fn applying(
        &self,
        holder: &Holder,
        demand: &Demand,
        more: &[Usage],
        specs: &BTreeMap<Arc<str>, QueueSpec>,
    ) -> Vec<LimitView> {
        let mut applied = Vec::new();
        for (counter, more) in &wanted_in_queues(holder, demand, more, specs).0 {
            if let Some(most) = most_in_queue(counter, specs) {
                let (text, used) = (describe_in_queue(counter, most), self.used(counter).jobs);
                applied.push(LimitView { text, used, wanted: more.jobs, most });
            }
        }
        for (counter, more) in &self.wanted(holder, demand, more).0 {
            let Counter::Policy(number, name) = counter else { continue };
            let rule = &self.rules[*number];
            for (what, most, used, wanted) in amounts(rule, &self.used(counter), more) {
                let limit = |most| LimitView { text: describe(rule, name, what, most), used, wanted, most };
                applied.extend(most.map(limit));
            }
        }
        applied.extend(self.accounts.applying(holder, demand, more));
        applied
    }

    fn reached_in_queue(
        &self,
        counter: &Counter,
        more: &Usage,
        specs: &BTreeMap<Arc<str>, QueueSpec>,
    ) -> Option<String> {
        let most = most_in_queue(counter, specs)?;
        (self.used(counter).jobs.saturating_add(more.jobs) > most).then(|| describe_in_queue(counter, most))
    }

    fn reached_of_policy(&self, counter: &Counter, more: &Usage) -> Option<String> {
        let Counter::Policy(number, name) = counter else { return None };
        let rule = &self.rules[*number];
        let amounts = amounts(rule, &self.used(counter), more);
        let (what, most, ..) = amounts
            .into_iter()
            .find(|(_, most, used, more)| most.is_some_and(|most| used.saturating_add(*more) > most))?;
        Some(describe(rule, name, what, most?))
    }

    /// The limit, for people, that keeps a run from using this much more. Limits of queues count only jobs.
    pub fn reached_by_growth(
        &self,
        holder: &Holder,
        demand: &Demand,
        more: &[Usage],
        held: &[Usage],
    ) -> Option<String> {
        let wanted = self.wanted(holder, demand, more);
        let of_policy = wanted.0.iter().find_map(|(counter, more)| self.reached_of_policy(counter, more));
        of_policy.or_else(|| self.accounts.reached(holder, demand, more, held))
    }
}

/// What a job would use, by the limits of its queues. Most queues have none, and then nothing is summed up.
fn wanted_in_queues(
    holder: &Holder,
    demand: &Demand,
    more: &[Usage],
    specs: &BTreeMap<Arc<str>, QueueSpec>,
) -> Wanted<Counter> {
    let mut wanted = Wanted(Vec::new());
    for part in parts(holder, demand, more) {
        let queue = &part.demand.queue;
        let Some(spec) = specs.get(queue) else { continue };
        if spec.max_running_jobs.is_some() {
            wanted.add(Counter::Queue(queue.clone()), part.usage);
        }
        if spec.max_running_jobs_per_user.is_some() {
            wanted.add(Counter::UserInQueue(queue.clone(), holder.user.clone()), part.usage);
        }
    }
    wanted
}

/// The limit of a queue on running jobs.
fn most_in_queue(counter: &Counter, specs: &BTreeMap<Arc<str>, QueueSpec>) -> Option<u64> {
    let most = match counter {
        Counter::Policy(..) => None,
        Counter::Queue(queue) => specs.get(queue)?.max_running_jobs,
        Counter::UserInQueue(queue, _) => specs.get(queue)?.max_running_jobs_per_user,
    };
    most.map(u64::from)
}

/// The same for people.
fn describe_in_queue(counter: &Counter, most: u64) -> String {
    match counter {
        Counter::Policy(..) => String::new(),
        Counter::Queue(queue) => format!("{most} running jobs in queue {queue}"),
        Counter::UserInQueue(queue, user) => format!("{most} running jobs of {user} in queue {queue}"),
    }
}

/// The amounts that a limit counts: the name, the maximum, the present use, and the additional use.
fn amounts(rule: &Limit, used: &Usage, more: &Usage) -> [(&'static str, Option<u64>, u64, u64); 4] {
    [
        ("running jobs", rule.max_running_jobs, used.jobs, more.jobs),
        ("nodes", rule.max_nodes, used.nodes, more.nodes),
        ("cores", rule.max_cores, used.cores, more.cores),
        ("GPUs", rule.max_gpus, used.gpus, more.gpus),
    ]
}

/// The queues of a job, each once.
pub(crate) fn queues(demand: &Demand) -> impl Iterator<Item = &Arc<str>> {
    let components = &demand.components;
    components.iter().enumerate().filter_map(move |(at, component)| {
        let is_first = components[..at].iter().all(|earlier| earlier.queue != component.queue);
        is_first.then_some(&component.queue)
    })
}
