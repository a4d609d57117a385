//! The limits on a component, from up to three sets: the class of its queue, its own class, its association (SL-L-02).

use crate::accounts::Accounts;
use muster_schemas::accounts::{
    AssociationKey, AssociationSpec, Bounds, Budget, ClassSpec, JobBounds, Remaining, UseLimits,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, fmt, sync::Arc};

/// The accounts and users for which a component is counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Charge {
    /// The account; `None` means the owner's own.
    pub account: Option<Arc<str>>,
    /// The owner's login name.
    pub user: Arc<str>,
    /// The service class.
    pub class: Option<Arc<str>>,
    /// The queue.
    pub queue: Arc<str>,
}

/// Whose jobs are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Counter {
    /// The jobs of a user in an account, or of an account including the accounts below it.
    Association(AssociationKey),
    /// The jobs of a class.
    Class(String),
    /// The jobs of a user in a class.
    ClassUser(String, String),
    /// The jobs of an account in a class.
    ClassAccount(String, String),
}

/// The limited amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Amount {
    /// Running jobs.
    RunningJobs,
    /// Waiting and running jobs.
    Jobs,
    /// Cores.
    Cores,
    /// Nodes.
    Nodes,
    /// GPUs.
    Gpus,
    /// Memory.
    MemoryBytes,
    /// Walltime of each job.
    WalltimeSeconds,
    /// Cores over time.
    CoreSeconds,
    /// Nodes over time.
    NodeSeconds,
    /// GPUs over time.
    GpuSeconds,
    /// The times for which jobs run.
    RunSeconds,
    /// Cores over the time that is left to running jobs.
    CoreSecondsLeft,
    /// Nodes over that time.
    NodeSecondsLeft,
    /// GPUs over that time.
    GpuSecondsLeft,
}

impl Amount {
    /// Whether it is used up over time.
    pub const fn is_budget(self) -> bool {
        matches!(self, Self::CoreSeconds | Self::NodeSeconds | Self::GpuSeconds | Self::RunSeconds)
    }

    /// Whether it counts only until running jobs end.
    pub const fn is_left(self) -> bool {
        matches!(self, Self::CoreSecondsLeft | Self::NodeSecondsLeft | Self::GpuSecondsLeft)
    }

    /// The words in the text of a [`Rule`].
    pub const fn words(self) -> &'static str {
        match self {
            Self::RunningJobs => "running jobs",
            Self::Jobs => "jobs",
            Self::Cores => "cores",
            Self::Nodes => "nodes",
            Self::Gpus => "GPUs",
            Self::MemoryBytes => "bytes of memory",
            Self::WalltimeSeconds => "seconds of walltime",
            Self::CoreSeconds => "core seconds",
            Self::NodeSeconds => "node seconds",
            Self::GpuSeconds => "GPU seconds",
            Self::RunSeconds => "run seconds",
            Self::CoreSecondsLeft => "core seconds left",
            Self::NodeSecondsLeft => "node seconds left",
            Self::GpuSecondsLeft => "GPU seconds left",
        }
    }
}

/// Whose jobs share the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Whose {
    /// All jobs together.
    All,
    /// The jobs of each user.
    EachUser,
    /// The jobs of each account.
    EachAccount,
    /// Each job.
    EachJob,
}

impl Whose {
    const fn words(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::EachUser => "each user",
            Self::EachAccount => "each account",
            Self::EachJob => "each job",
        }
    }
}

/// Where the limit is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Within {
    /// An association.
    Association(AssociationKey),
    /// A service class.
    Class(String),
}

/// One limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The counter of current use; `None` if only the component itself counts.
    pub counter: Option<Counter>,
    /// The limited amount.
    pub amount: Amount,
    /// The maximum.
    pub most: u64,
    /// Whose jobs share it.
    pub whose: Whose,
    /// Where it is set.
    pub within: Within,
}

impl fmt::Display for Rule {
    /// Read by people and recognised by dialects: `2 running jobs of each user in association optics/ada`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of {} in ", self.most, self.amount.words(), self.whose.words())?;
        match &self.within {
            Within::Association(key) => write!(f, "association {key}"),
            Within::Class(name) => write!(f, "class {name}"),
        }
    }
}

/// Where a component counts, and its limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Each once.
    pub counters: Vec<Counter>,
    /// In the order in which they are checked.
    pub rules: Vec<Rule>,
    /// Whether to refuse a job at submission if it could never start under these rules.
    pub refuses_hopeless: bool,
}

/// The limits of an earlier set, which override those of later sets.
type Taken = BTreeSet<(Whose, Amount)>;

impl Accounts {
    /// The limits on a component; none if limits are not enforced.
    pub fn rules(&self, charge: &Charge) -> Rules {
        let mut rules = Rules::default();
        if !self.settings.limits {
            return rules;
        }
        rules.refuses_hopeless = self.settings.refuses_hopeless;
        let of_queue = self.settings.queue_classes.get(&*charge.queue).and_then(|name| self.class(name));
        let own = charge.class.as_ref().and_then(|name| self.class(name));
        let own = own.filter(|own| of_queue.is_none_or(|of_queue| of_queue.name != own.name));
        let mut taken = Taken::new();
        for class in of_queue.into_iter().chain(own) {
            rules.add_class(class, charge, &mut taken);
        }
        if let Some(account) = &charge.account {
            rules.add_associations(&self.chain(account, &charge.user, &charge.queue), &taken);
        }
        rules
    }
}

impl Rules {
    fn add_class(&mut self, class: &ClassSpec, charge: &Charge, taken: &mut Taken) {
        let within = Within::Class(class.name.clone());
        let all = Counter::Class(class.name.clone());
        let user = Counter::ClassUser(class.name.clone(), charge.user.to_string());
        let account =
            charge.account.as_ref().map(|account| Counter::ClassAccount(class.name.clone(), account.to_string()));
        let UseLimits { together, each_user, each_account, each_job, budget, remaining } = &class.limits;
        let first = self.rules.len();
        self.add(&amounts(together), Whose::All, Some(&all), &within, taken);
        self.add(&budget_amounts(budget), Whose::All, Some(&all), &within, taken);
        self.add(&amounts_left(remaining), Whose::All, Some(&all), &within, taken);
        if let Some(account) = &account {
            self.add(&amounts(each_account), Whose::EachAccount, Some(account), &within, taken);
        }
        self.add(&amounts(each_user), Whose::EachUser, Some(&user), &within, taken);
        self.add(&job_amounts(each_job), Whose::EachJob, None, &within, taken);
        taken.extend(self.rules[first..].iter().map(|rule| (rule.whose, rule.amount)));
        self.counters.extend([all, user].into_iter().chain(account));
        self.refuses_hopeless |= class.refuses_hopeless;
    }

    /// Limits on all jobs together hold at each link; a limit on each user or job comes from the first link that sets
    /// it.
    fn add_associations(&mut self, chain: &[(AssociationKey, Option<&AssociationSpec>)], taken: &Taken) {
        let Some((own, _)) = chain.first() else { return };
        let own_counter = Counter::Association(own.clone());
        let mut told = taken.clone();
        for (key, spec) in chain {
            let counter = Counter::Association(key.clone());
            if let Some(spec) = spec {
                let within = Within::Association(key.clone());
                let UseLimits { together, each_user, each_job, budget, remaining, .. } = &spec.limits;
                self.add(&amounts(together), Whose::All, Some(&counter), &within, taken);
                self.add(&budget_amounts(budget), Whose::All, Some(&counter), &within, taken);
                self.add(&amounts_left(remaining), Whose::All, Some(&counter), &within, taken);
                let within = Within::Association(own.clone());
                let first = self.rules.len();
                self.add(&amounts(each_user), Whose::EachUser, Some(&own_counter), &within, &told);
                self.add(&job_amounts(each_job), Whose::EachJob, None, &within, &told);
                told.extend(self.rules[first..].iter().map(|rule| (rule.whose, rule.amount)));
            }
            self.counters.push(counter);
        }
    }

    fn add(
        &mut self,
        amounts: &[(Amount, Option<u64>)],
        whose: Whose,
        counter: Option<&Counter>,
        within: &Within,
        taken: &Taken,
    ) {
        for (amount, most) in amounts {
            let Some(most) = most.filter(|_| !taken.contains(&(whose, *amount))) else { continue };
            let (counter, within) = (counter.cloned(), within.clone());
            self.rules.push(Rule { counter, amount: *amount, most, whose, within });
        }
    }
}

fn amounts(bounds: &Bounds) -> [(Amount, Option<u64>); 6] {
    let Bounds { running_jobs, jobs, cores, nodes, gpus, memory_bytes } = *bounds;
    [
        (Amount::RunningJobs, running_jobs),
        (Amount::Jobs, jobs),
        (Amount::Cores, cores),
        (Amount::Nodes, nodes),
        (Amount::Gpus, gpus),
        (Amount::MemoryBytes, memory_bytes),
    ]
}

fn budget_amounts(budget: &Budget) -> [(Amount, Option<u64>); 4] {
    let Budget { core_seconds, node_seconds, gpu_seconds, run_seconds } = *budget;
    [
        (Amount::CoreSeconds, core_seconds),
        (Amount::NodeSeconds, node_seconds),
        (Amount::GpuSeconds, gpu_seconds),
        (Amount::RunSeconds, run_seconds),
    ]
}

fn job_amounts(bounds: &JobBounds) -> [(Amount, Option<u64>); 5] {
    let JobBounds { cores, nodes, gpus, memory_bytes, walltime_seconds } = *bounds;
    [
        (Amount::Cores, cores),
        (Amount::Nodes, nodes),
        (Amount::Gpus, gpus),
        (Amount::MemoryBytes, memory_bytes),
        (Amount::WalltimeSeconds, walltime_seconds),
    ]
}

fn amounts_left(remaining: &Remaining) -> [(Amount, Option<u64>); 3] {
    let Remaining { core_seconds, node_seconds, gpu_seconds } = *remaining;
    [
        (Amount::CoreSecondsLeft, core_seconds),
        (Amount::NodeSecondsLeft, node_seconds),
        (Amount::GpuSecondsLeft, gpu_seconds),
    ]
}
