//! Checks of changes to accounts, users, associations and classes against the records that exist.

use crate::{
    accounts::{Accounts, state::MAX_DEPTH},
    decide::{conflict, invalid, not_found, refuse},
    jobs::{Component, Job},
    state::State,
    validate,
};
use muster_schemas::{
    accounts::{
        AccountChange, AccountSettings, AccountSpec, AssociationKey, AssociationSpec, ClassSpec, DEFAULT_CLASS,
        UserSpec,
    },
    command::{Refusal, RefusalCode},
};

/// The greatest number of accounts, of users and of associations in a cluster.
const MAX_RECORDS: usize = 1_000_000;

/// The greatest number of classes in a cluster, and in the list of an association.
const MAX_CLASSES: usize = 10_000;

/// The greatest number of coordinators of an account.
const MAX_COORDINATORS: usize = 1_000;

/// Whether the records are still consistent after a change.
pub(crate) fn validate_change(state: &State, accounts: &Accounts, change: &AccountChange) -> Result<(), Refusal> {
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
            let coordinated = accounts.accounts().find(|account| account.coordinators.contains(&spec.name));
            if let Some(account) = coordinated.filter(|_| !is_left) {
                let (user, account) = (&spec.name, &account.name);
                return Err(conflict(format!("user `{user}` cannot be removed: it coordinates account `{account}`")));
            }
            match has_some && !is_left {
                true => Err(conflict(format!("user `{}` cannot be removed: there are associations", spec.name))),
                false => Ok(()),
            }
        }
        AccountChange::Association { after: Some(spec), .. } => validate_association(state, accounts, spec),
        AccountChange::Association { before: Some(spec), after: None } => require_no_jobs(state, accounts, &spec.of),
        AccountChange::Class { after: Some(spec), .. } => validate_class(accounts, spec),
        AccountChange::Class { before: Some(spec), after: None } => {
            let names = |one: &AssociationSpec| {
                one.classes.contains(&spec.name) || one.default_class.as_ref() == Some(&spec.name)
            };
            let of_queue = accounts.settings().queue_classes.values().any(|name| *name == spec.name);
            let makes_way = accounts.classes().find(|class| class.preempts.contains(&spec.name));
            if let Some(other) = makes_way.filter(|_| !accounts.classes.contains_key(&spec.name)) {
                return Err(conflict(format!(
                    "class `{}` cannot be removed: its jobs make way for those of class `{}`",
                    spec.name, other.name
                )));
            }
            let is_used = accounts.associations().any(names) || of_queue;
            match is_used && !accounts.classes.contains_key(&spec.name) {
                true => Err(conflict(format!("class `{}` cannot be removed: it is used", spec.name))),
                false => Ok(()),
            }
        }
        AccountChange::AssociationUse { of } => require_known(accounts, of),
        AccountChange::ClassUse { name } => require_class(accounts, name),
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

/// The account of an association, and its user if it has one, must exist: jobs can have been charged to it.
fn require_known(accounts: &Accounts, of: &AssociationKey) -> Result<(), Refusal> {
    require_account(accounts, &of.account)?;
    match of.user.is_none() || accounts.associations.contains_key(of) {
        true => Ok(()),
        false => Err(not_found(format!("association `{}` does not exist", validate::shown(&of.to_string())))),
    }
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
    require_records("coordinators of an account", spec.coordinators.len(), MAX_COORDINATORS)?;
    spec.coordinators.iter().try_for_each(|name| validate::identifier("account.coordinators", name))?;
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

fn validate_class(accounts: &Accounts, spec: &ClassSpec) -> Result<(), Refusal> {
    validate::identifier("class.name", &spec.name)?;
    validate::label("class.description", &spec.description)?;
    require_records("classes that make way", spec.preempts.len(), MAX_CLASSES)?;
    spec.preempts.iter().try_for_each(|name| require_class(accounts, name))?;
    if spec.preempts.contains(&spec.name) {
        return Err(invalid(format!("class `{}`: its jobs cannot make way for each other", spec.name)));
    }
    if spec.suspends_preempted && spec.cancels_preempted {
        return Err(invalid(format!(
            "class `{}`: its jobs that make way are suspended or cancelled, not both",
            spec.name
        )));
    }
    let grace = u64::from(spec.preemption_grace_seconds);
    validate::number("class.preemption_grace_seconds", grace, 0, 86_400)?;
    spec.limits.each_job.walltime_seconds.map_or(Ok(()), validate::walltime)
}

/// The usual class may always be named, even if no record exists because it limits nothing.
pub(crate) fn require_class(accounts: &Accounts, name: &str) -> Result<(), Refusal> {
    match accounts.class(name) {
        Some(_) => Ok(()),
        None if name == DEFAULT_CLASS => Ok(()),
        None => Err(not_found(format!("class: `{}` does not exist", validate::shown(name)))),
    }
}

/// An association cannot be removed while jobs wait or run in it.
fn require_no_jobs(state: &State, accounts: &Accounts, of: &AssociationKey) -> Result<(), Refusal> {
    let is_in = |job: &Job| {
        let is_of_user = of.user.as_ref().is_none_or(|user| *user == job.owner.user);
        let is_part = |component: &Component| {
            component.account.as_deref() == Some(&of.account)
                && of.queue.as_deref().is_none_or(|queue| *component.queue == *queue)
        };
        is_of_user && !job.is_finished() && job.components.iter().any(is_part)
    };
    // A later change of the same command may have restored it.
    if accounts.associations.contains_key(of) {
        return Ok(());
    }
    match state.jobs().find(|job| is_in(job)) {
        Some(job) => Err(conflict(format!("association `{of}` cannot be removed: job {} is in it", job.id))),
        None => Ok(()),
    }
}

/// The queues named in the settings must exist. A class may be created later; until then it limits nothing.
pub(crate) fn validate_settings(settings: &AccountSettings, knows_queue: impl Fn(&str) -> bool) -> Result<(), Refusal> {
    for (queue, class) in &settings.queue_classes {
        if !knows_queue(queue) {
            return Err(invalid(format!("accounts.queue_classes: queue `{}` does not exist", validate::shown(queue))));
        }
        validate::identifier("accounts.queue_classes", class)?;
    }
    Ok(())
}
