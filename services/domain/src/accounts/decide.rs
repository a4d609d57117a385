//! Accounts, associations and service classes: how they are changed, and whether they let a job in.

use super::{Decision, access::Access, conflict, invalid, not_found, refuse, select};
use crate::{
    requests,
    state::{
        Accounts, Amount, Charge, Counter, Job, Rule, State,
        accounts::{Load, MAX_DEPTH},
    },
    validate,
};
use muster_schemas::{
    accounts::{
        AccountChange, AccountSettings, AccountSpec, AssociationKey, AssociationSpec, ClassSpec, DEFAULT_CLASS,
        UserSpec,
    },
    cluster::ClusterSettings,
    command::{JobSelection, Refusal, RefusalCode},
    event::{Event, Owner},
    job::{Component, JobSpec},
    resources::Alternative,
};
use std::{collections::BTreeMap, fmt, sync::Arc};

/// Changes of one command.
const MAX_CHANGES: usize = 10_000;
/// Accounts, users and associations of a cluster, of each.
const MAX_RECORDS: usize = 1_000_000;
/// Classes of a cluster, and those that an association names.
const MAX_CLASSES: usize = 10_000;
/// What stands before the text of a limit that a job is refused for.
const REACHED: &str = "limit reached: ";

/// Changes accounts, users, associations and classes: all of it or nothing.
pub(super) fn change(access: &Access, changes: Vec<AccountChange>) -> Result<Decision, Refusal> {
    access.require_operator("change accounts, associations and classes")?;
    if changes.len() > MAX_CHANGES {
        return Err(invalid(format!("changes: {} given, at most {MAX_CHANGES} can be in one command", changes.len())));
    }
    let mut accounts = access.state.accounts().clone();
    for change in &changes {
        require_unchanged(&accounts, change)?;
        accounts.change(change);
    }
    changes.iter().try_for_each(|change| validate_change(access.state, &accounts, change))?;
    Ok(Decision::done(match changes.is_empty() {
        true => Vec::new(),
        false => vec![Event::AccountsChanged { changes: Arc::new(changes) }],
    }))
}

/// Whether what is changed still is what whoever changes it has seen, and keeps its name.
fn require_unchanged(accounts: &Accounts, change: &AccountChange) -> Result<(), Refusal> {
    match change {
        AccountChange::Account { before, after } => {
            same("account", &accounts.accounts, before, after, |spec| spec.name.clone())
        }
        AccountChange::User { before, after } => same("user", &accounts.users, before, after, |spec| spec.name.clone()),
        AccountChange::Association { before, after } => {
            same("association", &accounts.associations, before, after, |spec| spec.of.clone())
        }
        AccountChange::Class { before, after } => {
            same("class", &accounts.classes, before, after, |spec| spec.name.clone())
        }
    }
}

fn same<K: Ord + fmt::Display, T: PartialEq>(
    what: &str,
    known: &BTreeMap<K, Arc<T>>,
    before: &Option<T>,
    after: &Option<T>,
    key: impl Fn(&T) -> K,
) -> Result<(), Refusal> {
    let keys = [before, after].map(|spec| spec.as_ref().map(&key));
    let key = match keys {
        [Some(before), Some(after)] if before != after => {
            return Err(invalid(format!("{what} `{before}` cannot be given another name")));
        }
        [Some(key), _] | [None, Some(key)] => key,
        [None, None] => return Err(invalid(format!("{what}: nothing to change"))),
    };
    let shown = validate::shown(&key.to_string());
    match (known.get(&key).map(|known| &**known), before) {
        (None, None) => Ok(()),
        (Some(known), Some(before)) if known == before => Ok(()),
        (Some(_), None) => Err(conflict(format!("{what} `{shown}` exists already"))),
        (None, Some(_)) => Err(not_found(format!("{what} `{shown}` does not exist"))),
        (Some(_), Some(_)) => Err(conflict(format!("{what} `{shown}` has been changed meanwhile, ask again"))),
    }
}

/// Whether a change leaves something behind that hangs together.
fn validate_change(state: &State, accounts: &Accounts, change: &AccountChange) -> Result<(), Refusal> {
    match change {
        AccountChange::Account { after: Some(spec), .. } => validate_account(accounts, spec),
        AccountChange::Account { before: Some(spec), after: None } => {
            let is_used = |used: bool, by: &str| match used && !accounts.accounts.contains_key(&spec.name) {
                true => Err(conflict(format!("account `{}` cannot be removed: {by}", spec.name))),
                false => Ok(()),
            };
            is_used(
                accounts.accounts().any(|other| other.parent.as_ref() == Some(&spec.name)),
                "others are part of it",
            )?;
            is_used(accounts.users().any(|user| user.default_account == spec.name), "it is a user's default account")?;
            is_used(associations_of(accounts, &spec.name).next().is_some(), "it has associations")
        }
        AccountChange::User { after: Some(spec), .. } => validate_user(accounts, spec),
        AccountChange::User { before: Some(spec), after: None } => {
            let is_left = accounts.users.contains_key(&spec.name);
            let has_some = accounts.associations().any(|one| one.of.user.as_ref() == Some(&spec.name));
            match has_some && !is_left {
                true => Err(conflict(format!("user `{}` cannot be removed: there are associations", spec.name))),
                false => Ok(()),
            }
        }
        AccountChange::Association { after: Some(spec), .. } => validate_association(state, accounts, spec),
        AccountChange::Association { before: Some(spec), after: None } => require_no_jobs(state, accounts, &spec.of),
        AccountChange::Class { after: Some(spec), .. } => validate_class(spec),
        AccountChange::Class { before: Some(spec), after: None } => {
            let names = |one: &AssociationSpec| {
                one.classes.contains(&spec.name) || one.default_class.as_ref() == Some(&spec.name)
            };
            let of_queue = accounts.settings().queue_classes.values().any(|name| *name == spec.name);
            let is_used = accounts.associations().any(names) || of_queue;
            match is_used && !accounts.classes.contains_key(&spec.name) {
                true => Err(conflict(format!("class `{}` cannot be removed: it is used", spec.name))),
                false => Ok(()),
            }
        }
        AccountChange::Account { .. }
        | AccountChange::User { .. }
        | AccountChange::Association { .. }
        | AccountChange::Class { .. } => Ok(()),
    }
}

fn associations_of<'a>(accounts: &'a Accounts, account: &str) -> impl Iterator<Item = &'a AssociationSpec> + use<'a> {
    let first = AssociationKey { account: account.to_owned(), user: None, queue: None };
    let name = account.to_owned();
    let from = accounts.associations.range(first..).map(|(_, spec)| &**spec);
    from.take_while(move |spec| spec.of.account == name)
}

fn require_records(what: &str, records: usize, most: usize) -> Result<(), Refusal> {
    match records > most {
        true => Err(refuse(RefusalCode::LimitReached, format!("the cluster takes at most {most} {what}"))),
        false => Ok(()),
    }
}

fn validate_account(accounts: &Accounts, spec: &AccountSpec) -> Result<(), Refusal> {
    validate::identifier("account.name", &spec.name)?;
    validate::label("account.description", &spec.description)?;
    validate::label("account.organisation", &spec.organisation)?;
    require_records("accounts", accounts.accounts.len(), MAX_RECORDS)?;
    let mut above = spec.parent.as_deref();
    for _ in 0..MAX_DEPTH {
        let Some(name) = above else { return Ok(()) };
        let parent = accounts.accounts.get(name);
        let parent = parent.ok_or_else(|| not_found(format!("account `{}` does not exist", validate::shown(name))))?;
        above = parent.parent.as_deref();
    }
    Err(invalid(format!("account `{}`: is part of itself, or has more than {MAX_DEPTH} accounts above it", spec.name)))
}

fn validate_user(accounts: &Accounts, spec: &UserSpec) -> Result<(), Refusal> {
    validate::identifier("user.name", &spec.name)?;
    require_records("users", accounts.users.len(), MAX_RECORDS)?;
    require_account(accounts, &spec.default_account)
}

fn require_account(accounts: &Accounts, name: &str) -> Result<(), Refusal> {
    match accounts.accounts.contains_key(name) {
        true => Ok(()),
        false => Err(not_found(format!("account `{}` does not exist", validate::shown(name)))),
    }
}

fn validate_association(state: &State, accounts: &Accounts, spec: &AssociationSpec) -> Result<(), Refusal> {
    let AssociationKey { account, user, queue } = &spec.of;
    require_records("associations", accounts.associations.len(), MAX_RECORDS)?;
    require_account(accounts, account)?;
    if let Some(user) = user.as_ref().filter(|user| !accounts.users.contains_key(*user)) {
        return Err(not_found(format!("user `{}` is not known to the accounts", validate::shown(user))));
    }
    match queue {
        Some(_) if user.is_none() => {
            return Err(invalid(format!("association `{}`: an account as a whole has none for one queue", spec.of)));
        }
        Some(queue) if state.queue(queue).is_none() => {
            return Err(not_found(format!("queue `{}` does not exist", validate::shown(queue))));
        }
        _ => {}
    }
    if spec.limits.each_account != Default::default() {
        return Err(invalid(format!("association `{}`: only classes have limits of each account", spec.of)));
    }
    spec.limits.each_job.walltime_seconds.map_or(Ok(()), validate::walltime)?;
    require_records("classes of an association", spec.classes.len(), MAX_CLASSES)?;
    let classes = spec.classes.iter().chain(&spec.default_class);
    classes.into_iter().try_for_each(|class| require_class(accounts, class))?;
    match &spec.default_class {
        Some(class) if !accounts.has_in_list(&spec.of, class) => {
            Err(invalid(format!("association `{}`: its default class `{class}` is not one that it may use", spec.of)))
        }
        _ => Ok(()),
    }
}

fn validate_class(spec: &ClassSpec) -> Result<(), Refusal> {
    validate::identifier("class.name", &spec.name)?;
    validate::label("class.description", &spec.description)?;
    spec.limits.each_job.walltime_seconds.map_or(Ok(()), validate::walltime)
}

/// Everybody may have the usual class in mind, also where nobody made it because it limits nothing.
fn require_class(accounts: &Accounts, name: &str) -> Result<(), Refusal> {
    match accounts.class(name) {
        Some(_) => Ok(()),
        None if name == DEFAULT_CLASS => Ok(()),
        None => Err(not_found(format!("class: `{}` does not exist", validate::shown(name)))),
    }
}

/// An association that jobs wait or run in stays.
fn require_no_jobs(state: &State, accounts: &Accounts, of: &AssociationKey) -> Result<(), Refusal> {
    let is_in = |job: &Job| {
        let is_of_user = of.user.as_ref().is_none_or(|user| *user == job.owner.user);
        let is_part = |component: &crate::state::Component| {
            component.account.as_deref() == Some(&of.account)
                && of.queue.as_deref().is_none_or(|queue| *component.queue == *queue)
        };
        is_of_user && !job.is_finished() && job.components.iter().any(is_part)
    };
    // It may have been put in again by a later change of the same command.
    if accounts.associations.contains_key(of) {
        return Ok(());
    }
    match state.jobs().find(|job| is_in(job)) {
        Some(job) => Err(conflict(format!("association `{of}` cannot be removed: job {} is in it", job.id))),
        None => Ok(()),
    }
}

/// The queues that the settings name exist. A class may be made later; until then it limits nothing.
pub(super) fn validate_settings(settings: &AccountSettings, knows_queue: impl Fn(&str) -> bool) -> Result<(), Refusal> {
    for (queue, class) in &settings.queue_classes {
        if !knows_queue(queue) {
            return Err(invalid(format!("accounts.queue_classes: queue `{}` does not exist", validate::shown(queue))));
        }
        validate::identifier("accounts.queue_classes", class)?;
    }
    Ok(())
}

/// Puts components that wait into another class (SL-C-36).
pub(super) fn change_class(access: &Access, jobs: &JobSelection, class: &str) -> Result<Decision, Refusal> {
    validate::name("class", class)?;
    let mut entering = Entering::default();
    select::act_on(access, jobs, |target| {
        let (job, component) = match target {
            select::Target::Task(array, index) => {
                let message = format!("task {index} of array {} has not started; change the whole array", array.id);
                return Err(conflict(message));
            }
            select::Target::Component(job, component) => (job, Some(component)),
            select::Target::Job(job) | select::Target::Array(job) => (job, None),
        };
        if !job.is_waiting() {
            return Err(conflict(format!("job {} no longer waits; its class stays", job.id)));
        }
        let concerns = |number: usize| component.is_none_or(|only| only as usize == number);
        let moved = |number: usize, charge: Charge| match concerns(number) {
            true => Charge { class: Some(class.into()), ..charge },
            false => charge,
        };
        entering.check_moved(access, job, concerns, moved)?;
        Ok(vec![Event::ClassChanged { job: target.id(), component, class: class.to_owned() }])
    })
}

/// Whether an association admits a user to an account, where that is enforced (SL-L-07).
pub(super) fn require_association(
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

/// Whether a class exists and may be used, where that is enforced (SL-L-07).
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

/// Fills in account and class of a component that names none, and checks that both may be used; operators may use every class.
pub(super) fn complete(access: &Access, owner: &Owner, component: &mut Component) -> Result<(), Refusal> {
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

/// By how many jobs the jobs of one command make the counts of the state more or fewer, as far as they have been looked at.
#[derive(Default)]
pub(super) struct Entering(BTreeMap<Counter, i64>);

/// What the components of one job use together, each at least.
#[derive(Clone, Copy, Default)]
struct Least {
    jobs: u64,
    cores: u64,
    nodes: u64,
    gpus: u64,
    memory_bytes: u64,
}

impl Entering {
    /// Checks the components of a job in order against their limits; what earlier components use counts for later ones
    /// (SL-L-01 to SL-L-05, SL-S-20). `own` is the job if it is in the state already.
    pub(super) fn check(
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

    /// Checks the components of a job that waits and are to be counted for others than before: whether they may use their
    /// classes there, and whether as many jobs may be there (SL-L-03, SL-L-07). `moved` says for whom a component is counted
    /// from now on, by its number and for whom it is counted now. Limits that the job comes no nearer to are not looked at.
    pub(super) fn check_moved(
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

    /// The jobs that a counter has, with what this command has changed by now.
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

/// Who names no walltime gets the longest that there may be.
fn complete_walltime(alternatives: &mut [Alternative], most: u64) {
    for alternative in alternatives {
        alternative.walltime_seconds.get_or_insert(most);
    }
}

/// The shortest walltime of the ways to serve a component, in seconds.
fn walltime(component: &Component) -> u64 {
    let walltimes = component.alternatives.iter().map(|way| way.walltime_seconds.unwrap_or(u64::MAX));
    walltimes.min().unwrap_or(u64::MAX)
}

impl Least {
    /// Of a component: of each amount the least that one of its ways needs.
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
            // Checked against what waits and runs, before.
            Amount::Jobs => 0,
            Amount::Cores => self.cores,
            Amount::Nodes => self.nodes,
            Amount::Gpus => self.gpus,
            Amount::MemoryBytes => self.memory_bytes,
            Amount::WalltimeSeconds => walltime_seconds,
        }
    }
}
