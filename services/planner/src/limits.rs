//! What may be in use at a time by whom: the limits of queues and those of the policy.

use crate::model::{Demand, Holder};
use muster_schemas::{
    cluster::QueueSpec,
    policy::{Limit, LimitPer},
    resources::Placement,
    views::LimitView,
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// What jobs have in use together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub jobs: u64,
    pub nodes: u64,
    pub cores: u64,
    pub gpus: u64,
}

impl Usage {
    /// What one job has in use with this placement.
    pub fn of(placement: &Placement) -> Self {
        let mut usage = Self { jobs: 1, ..Self::default() };
        for share in placement.shares() {
            usage.nodes += 1;
            usage.cores += share.cores.len();
            usage.gpus += share.gpus.len();
        }
        usage
    }

    fn add(&mut self, other: &Self) {
        self.jobs += other.jobs;
        self.nodes += other.nodes;
        self.cores += other.cores;
        self.gpus += other.gpus;
    }

    fn subtract(&mut self, other: &Self) {
        self.jobs = self.jobs.saturating_sub(other.jobs);
        self.nodes = self.nodes.saturating_sub(other.nodes);
        self.cores = self.cores.saturating_sub(other.cores);
        self.gpus = self.gpus.saturating_sub(other.gpus);
    }
}

/// Whose usage is counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Counter {
    /// By the limit with this number of the policy, for this name.
    Policy(usize, Arc<str>),
    /// Running jobs of a queue.
    Queue(Arc<str>),
    /// Running jobs of a user in a queue.
    UserInQueue(Arc<str>, Arc<str>),
}

/// The limits of a policy and what is in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    rules: Vec<Limit>,
    used: HashMap<Counter, Usage>,
}

impl Limits {
    pub fn new(rules: Vec<Limit>) -> Self {
        Self { rules, used: HashMap::new() }
    }

    /// A job begins to use that much.
    pub fn begin(&mut self, holder: &Holder, demand: &Demand, usage: &Usage) {
        self.for_each_counter(holder, demand, |used, counter| used.entry(counter).or_default().add(usage));
    }

    /// A job no longer uses that much.
    pub fn end(&mut self, holder: &Holder, demand: &Demand, usage: &Usage) {
        self.for_each_counter(holder, demand, |used, counter| {
            if let Some(sum) = used.get_mut(&counter) {
                sum.subtract(usage);
                if *sum == Usage::default() {
                    used.remove(&counter);
                }
            }
        });
    }

    fn for_each_counter(
        &mut self,
        holder: &Holder,
        demand: &Demand,
        mut each: impl FnMut(&mut HashMap<Counter, Usage>, Counter),
    ) {
        for (number, rule) in self.rules.iter().enumerate() {
            for name in names(rule, holder, demand) {
                each(&mut self.used, Counter::Policy(number, name));
            }
        }
        for queue in queues(demand) {
            each(&mut self.used, Counter::Queue(queue.clone()));
            each(&mut self.used, Counter::UserInQueue(queue.clone(), holder.user.clone()));
        }
    }

    fn used(&self, counter: &Counter) -> Usage {
        self.used.get(counter).copied().unwrap_or_default()
    }

    /// The limit, for people, that keeps a job from using that much more.
    pub fn reached(
        &self,
        holder: &Holder,
        demand: &Demand,
        more: &Usage,
        specs: &BTreeMap<Arc<str>, QueueSpec>,
    ) -> Option<String> {
        self.reached_in_queues(holder, demand, specs).or_else(|| self.reached_of_policy(holder, demand, more))
    }

    /// All limits that count a job, whether they hold it or not: how much they count, and the job would add.
    pub fn applying(
        &self,
        holder: &Holder,
        demand: &Demand,
        more: &Usage,
        specs: &BTreeMap<Arc<str>, QueueSpec>,
    ) -> Vec<LimitView> {
        let mut applied = Vec::new();
        for queue in queues(demand) {
            let Some(spec) = specs.get(queue) else { continue };
            let user = &holder.user;
            let in_queue = spec.max_running_jobs.map(|most| {
                let used = self.used(&Counter::Queue(queue.clone())).jobs;
                (most, used, format!("{most} running jobs in queue {queue}"))
            });
            let of_user = spec.max_running_jobs_per_user.map(|most| {
                let used = self.used(&Counter::UserInQueue(queue.clone(), user.clone())).jobs;
                (most, used, format!("{most} running jobs of {user} in queue {queue}"))
            });
            let limits = in_queue.into_iter().chain(of_user);
            applied.extend(limits.map(|(most, used, text)| LimitView { text, used, wanted: 1, most: most.into() }));
        }
        for (number, rule) in self.rules.iter().enumerate() {
            for name in names(rule, holder, demand) {
                let used = self.used(&Counter::Policy(number, name.clone()));
                for (what, most, used, wanted) in amounts(rule, &used, more) {
                    let limit = |most| LimitView { text: describe(rule, &name, what, most), used, wanted, most };
                    applied.extend(most.map(limit));
                }
            }
        }
        applied
    }

    fn reached_in_queues(
        &self,
        holder: &Holder,
        demand: &Demand,
        specs: &BTreeMap<Arc<str>, QueueSpec>,
    ) -> Option<String> {
        for queue in queues(demand) {
            let Some(spec) = specs.get(queue) else { continue };
            if let Some(most) = spec.max_running_jobs
                && self.used(&Counter::Queue(queue.clone())).jobs >= u64::from(most)
            {
                return Some(format!("{most} running jobs in queue {queue}"));
            }
            if let Some(most) = spec.max_running_jobs_per_user
                && self.used(&Counter::UserInQueue(queue.clone(), holder.user.clone())).jobs >= u64::from(most)
            {
                return Some(format!("{most} running jobs of {} in queue {queue}", holder.user));
            }
        }
        None
    }

    /// The limit of the policy, for people, that keeps a job from using that much more.
    pub fn reached_of_policy(&self, holder: &Holder, demand: &Demand, more: &Usage) -> Option<String> {
        for (number, rule) in self.rules.iter().enumerate() {
            for name in names(rule, holder, demand) {
                let used = self.used(&Counter::Policy(number, name.clone()));
                for (what, most, used, more) in amounts(rule, &used, more) {
                    if let Some(most) = most.filter(|most| used.saturating_add(more) > *most) {
                        return Some(describe(rule, &name, what, most));
                    }
                }
            }
        }
        None
    }
}

/// What a limit counts: its name, how much there may be, is, and would come.
fn amounts(rule: &Limit, used: &Usage, more: &Usage) -> [(&'static str, Option<u64>, u64, u64); 4] {
    [
        ("running jobs", rule.max_running_jobs, used.jobs, more.jobs),
        ("nodes", rule.max_nodes, used.nodes, more.nodes),
        ("cores", rule.max_cores, used.cores, more.cores),
        ("GPUs", rule.max_gpus, used.gpus, more.gpus),
    ]
}

fn describe(rule: &Limit, name: &str, what: &str, most: u64) -> String {
    let of = match rule.per {
        LimitPer::All => String::new(),
        LimitPer::User => format!(" of {name}"),
        LimitPer::Group => format!(" of group {name}"),
        LimitPer::Account => format!(" of account {name}"),
        LimitPer::Queue => format!(" in queue {name}"),
    };
    let queue = rule.queue.as_ref().map_or_else(String::new, |queue| format!(" in queue {queue}"));
    format!("{most} {what}{of}{queue}")
}

/// The names under which a limit counts a job: none if it does not count it.
fn names(rule: &Limit, holder: &Holder, demand: &Demand) -> Vec<Arc<str>> {
    if rule.queue.as_ref().is_some_and(|wanted| queues(demand).all(|queue| **queue != **wanted)) {
        return Vec::new();
    }
    let mut names: Vec<Arc<str>> = match rule.per {
        LimitPer::All => vec!["".into()],
        LimitPer::User => vec![holder.user.clone()],
        LimitPer::Group => vec![holder.group.to_string().into()],
        LimitPer::Account => holder.account.iter().cloned().collect(),
        LimitPer::Queue => queues(demand).cloned().collect(),
    };
    names.retain(|name| rule.name.as_deref().is_none_or(|wanted| wanted == &**name));
    names
}

/// The queues of a job, each once.
pub(crate) fn queues(demand: &Demand) -> impl Iterator<Item = &Arc<str>> {
    let components = &demand.components;
    components.iter().enumerate().filter_map(move |(at, component)| {
        let is_first = components[..at].iter().all(|earlier| earlier.queue != component.queue);
        is_first.then_some(&component.queue)
    })
}
