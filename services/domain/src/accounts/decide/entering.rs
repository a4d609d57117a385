//! Whether accounts and classes admit a job.

use crate::{
    accounts::{Accounts, Amount, Charge, Counter, Rule, load::Load, validate::require_class},
    decide::{Access, not_found, refuse},
    jobs::Job,
    requests,
    state::State,
    validate,
};
use muster_schemas::{
    accounts::DEFAULT_CLASS,
    cluster::ClusterSettings,
    command::{Refusal, RefusalCode},
    event::Owner,
    job::{Component, JobSpec},
    resources::Alternative,
};
use std::collections::BTreeMap;

/// The prefix of the text of a limit for which a job is refused.
const REACHED: &str = "limit reached: ";

/// Whether an association admits a user to an account, where this is enforced (SL-L-07).
pub(crate) fn require_association(
    accounts: &Accounts,
    account: Option<&str>,
    owner: &Owner,
    queue: &str,
) -> Result<(), Refusal> {
    if !accounts.settings().associations {
        return Ok(());
    }
    let user = &owner.user;
    let Some(account) = account else {
        return Err(not_found(format!("account: none is given, and user {user} has no default account")));
    };
    match accounts.association(account, user, queue) {
        Some(_) => Ok(()),
        None => {
            let shown = validate::shown(account);
            Err(not_found(format!("account: user {user} has no association with `{shown}` in queue `{queue}`")))
        }
    }
}

/// Whether a class exists and may be used, where this is enforced (SL-L-07).
fn require_use(access: &Access, account: Option<&str>, user: &str, queue: &str, class: &str) -> Result<(), Refusal> {
    let accounts = access.state.accounts();
    if !accounts.settings().classes {
        return Ok(());
    }
    require_class(accounts, class)?;
    match access.is_operator() || accounts.may_use(account, user, queue, class) {
        true => Ok(()),
        false => Err(refuse(RefusalCode::PermissionDenied, format!("class: `{class}` is not one that {user} may use"))),
    }
}

/// Fills in the account and class of a component that names none, and checks that both may be used; operators may use
/// every class.
pub(crate) fn complete(access: &Access, owner: &Owner, component: &mut Component) -> Result<(), Refusal> {
    let accounts = access.state.accounts();
    let queue = component.queue.as_deref().unwrap_or_default();
    if component.account.is_none() {
        component.account = accounts.default_account(&owner.user).map(str::to_owned);
    }
    let account = component.account.as_deref();
    require_association(accounts, account, owner, queue)?;
    if component.class.is_none() {
        component.class = accounts.default_class(account, &owner.user, queue).map(str::to_owned);
    }
    let class = component.class.as_deref().unwrap_or(DEFAULT_CLASS);
    require_use(access, account, &owner.user, queue, class)
}

/// By how much the jobs of one command checked so far change the counts of the state.
#[derive(Default)]
pub(crate) struct Entering(BTreeMap<Counter, i64>);

/// The least that the components of one job use together.
#[derive(Clone, Copy, Default)]
struct Least {
    jobs: u64,
    cores: u64,
    nodes: u64,
    gpus: u64,
    memory_bytes: u64,
}

impl Entering {
    /// Checks the components of a job in order against their limits; the use of earlier components counts for later
    /// ones (SL-L-01 to SL-L-05, SL-S-20). `own` is the job if it is in the state already.
    pub(crate) fn check(
        &mut self,
        state: &State,
        owner: &Owner,
        own: Option<&Job>,
        spec: &mut JobSpec,
    ) -> Result<(), Refusal> {
        let accounts = state.accounts();
        if !accounts.settings().limits {
            return Ok(());
        }
        let jobs = spec.array.as_ref().map_or(1, |array| array.indices.len());
        let own = own.map(Load::of);
        let mut of_job: BTreeMap<Counter, Least> = BTreeMap::new();
        for component in &mut spec.components {
            let rules = accounts.rules(&charge(owner, component));
            for rule in rules.rules.iter().filter(|rule| rule.amount == Amount::Jobs) {
                let Some(counter) = &rule.counter else { continue };
                let own = own.as_ref().map_or(0, |own| own.counted_by(accounts, counter));
                let used = self.counted(state, counter).saturating_sub(own);
                require(rule, used.saturating_add(jobs))?;
            }
            for rule in rules.rules.iter().filter(|rule| rule.amount == Amount::WalltimeSeconds) {
                complete_walltime(&mut component.alternatives, rule.most);
            }
            let least = Least::of(component, state.settings());
            for counter in &rules.counters {
                of_job.entry(counter.clone()).or_default().add(&least);
            }
            if rules.refuses_hopeless {
                let longest = walltime(component);
                rules.rules.iter().try_for_each(|rule| {
                    let used = rule.counter.as_ref().and_then(|counter| of_job.get(counter)).unwrap_or(&least);
                    require(rule, used.amount(rule.amount, longest))
                })?;
            }
            rules.counters.into_iter().for_each(|counter| self.count(counter, signed(jobs)));
        }
        Ok(())
    }

    /// Checks components of a waiting job that will be counted elsewhere: whether they may use their classes there, and
    /// whether there is room for the jobs (SL-L-03, SL-L-07). `moved` maps the number of a component and its present
    /// charge to the new charge. Limits that the job comes no nearer to are skipped.
    pub(crate) fn check_moved(
        &mut self,
        access: &Access,
        job: &Job,
        concerns: impl Fn(usize) -> bool,
        moved: impl Fn(usize, Charge) -> Charge,
    ) -> Result<(), Refusal> {
        let state = access.state;
        let accounts = state.accounts();
        let before = Load::of(job);
        let after = before.moved(moved);
        for (_, charge) in after.charges().enumerate().filter(|(number, _)| concerns(*number)) {
            let Some(class) = &charge.class else { continue };
            require_use(access, charge.account.as_deref(), &charge.user, &charge.queue, class)?;
        }
        if !accounts.settings().limits {
            return Ok(());
        }
        for rule in after.charges().flat_map(|charge| accounts.rules(&charge).rules) {
            let Some(counter) = rule.counter.as_ref().filter(|_| rule.amount == Amount::Jobs) else { continue };
            let (fewer, more) = (before.counted_by(accounts, counter), after.counted_by(accounts, counter));
            if more > fewer {
                require(&rule, self.counted(state, counter).saturating_sub(fewer).saturating_add(more))?;
            }
        }
        for (load, jobs) in [(&before, -signed(before.jobs())), (&after, signed(after.jobs()))] {
            let counters = load.charges().flat_map(|charge| accounts.rules(&charge).counters);
            counters.for_each(|counter| self.count(counter, jobs));
        }
        Ok(())
    }

    /// The jobs of a counter, including the changes of this command so far.
    fn counted(&self, state: &State, counter: &Counter) -> u64 {
        let changed = self.0.get(counter).copied().unwrap_or(0);
        state.index.submitted.of(counter).saturating_add_signed(changed)
    }

    fn count(&mut self, counter: Counter, jobs: i64) {
        let count = self.0.entry(counter).or_default();
        *count = count.saturating_add(jobs);
    }
}

fn signed(jobs: u64) -> i64 {
    i64::try_from(jobs).unwrap_or(i64::MAX)
}

fn charge(owner: &Owner, component: &Component) -> Charge {
    Charge {
        account: component.account.as_deref().map(Into::into),
        user: owner.user.as_str().into(),
        class: component.class.as_deref().map(Into::into),
        queue: component.queue.as_deref().unwrap_or_default().into(),
    }
}

fn require(rule: &Rule, used: u64) -> Result<(), Refusal> {
    match used > rule.most {
        true => Err(refuse(RefusalCode::LimitReached, format!("{REACHED}{rule}"))),
        false => Ok(()),
    }
}

/// Alternatives without a walltime get the longest that is allowed.
fn complete_walltime(alternatives: &mut [Alternative], most: u64) {
    for alternative in alternatives {
        alternative.walltime_seconds.get_or_insert(most);
    }
}

/// The shortest walltime of a component's alternatives, in seconds.
fn walltime(component: &Component) -> u64 {
    let walltimes = component.alternatives.iter().map(|way| way.walltime_seconds.unwrap_or(u64::MAX));
    walltimes.min().unwrap_or(u64::MAX)
}

impl Least {
    /// The minimum of each amount over the alternatives of a component.
    fn of(component: &Component, settings: &ClusterSettings) -> Self {
        let ways = component.alternatives.iter().map(|way| Self::of_way(way, settings));
        let least = ways.reduce(|one, other| Self {
            jobs: 1,
            cores: one.cores.min(other.cores),
            nodes: one.nodes.min(other.nodes),
            gpus: one.gpus.min(other.gpus),
            memory_bytes: one.memory_bytes.min(other.memory_bytes),
        });
        least.unwrap_or(Self { jobs: 1, cores: 1, nodes: 1, ..Self::default() })
    }

    fn of_way(way: &Alternative, settings: &ClusterSettings) -> Self {
        let mut sum = Self { jobs: 1, ..Self::default() };
        for request in &way.requests {
            let least = requests::minimum(request, settings);
            let (cores, nodes, gpus, memory_bytes) = (least.cores, least.nodes, least.gpus, least.memory_bytes);
            sum.add(&Self { jobs: 0, cores, nodes, gpus, memory_bytes });
        }
        sum
    }

    fn add(&mut self, other: &Self) {
        self.jobs = self.jobs.saturating_add(other.jobs);
        self.cores = self.cores.saturating_add(other.cores);
        self.nodes = self.nodes.saturating_add(other.nodes);
        self.gpus = self.gpus.saturating_add(other.gpus);
        self.memory_bytes = self.memory_bytes.saturating_add(other.memory_bytes);
    }

    fn amount(&self, amount: Amount, walltime_seconds: u64) -> u64 {
        match amount {
            Amount::RunningJobs => self.jobs,
            // Checked earlier, against the jobs that wait and run.
            Amount::Jobs => 0,
            Amount::Cores => self.cores,
            Amount::Nodes => self.nodes,
            Amount::Gpus => self.gpus,
            Amount::MemoryBytes => self.memory_bytes,
            Amount::WalltimeSeconds => walltime_seconds,
            Amount::CoreSeconds | Amount::CoreSecondsLeft => self.cores.saturating_mul(walltime_seconds),
            Amount::NodeSeconds | Amount::NodeSecondsLeft => self.nodes.saturating_mul(walltime_seconds),
            Amount::GpuSeconds | Amount::GpuSecondsLeft => self.gpus.saturating_mul(walltime_seconds),
            Amount::RunSeconds => walltime_seconds,
        }
    }
}
