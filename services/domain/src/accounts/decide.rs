//! Changes of accounts, users, associations and classes, and moving jobs into another class.

mod coordinators;
pub(crate) mod entering;

use crate::{
    accounts::{
        Accounts, Charge,
        decide::entering::Entering,
        validate::{require_class, validate_change},
    },
    decide::{Access, Decision, conflict, invalid, not_found},
    jobs::decide::select::{self, Target},
    validate,
};
use muster_schemas::{
    accounts::AccountChange,
    command::{JobSelection, Refusal},
    event::Event,
};
use std::{collections::BTreeMap, fmt, sync::Arc};

/// The greatest number of changes in one command.
const MAX_CHANGES: usize = 10_000;

/// Changes accounts, users, associations and classes: all of it or nothing.
pub(crate) fn change(access: &Access, changes: Vec<AccountChange>) -> Result<Decision, Refusal> {
    if changes.len() > MAX_CHANGES {
        return Err(invalid(format!("changes: {} given, at most {MAX_CHANGES} can be in one command", changes.len())));
    }
    // Before the accounts are copied.
    coordinators::require_any(access, changes.is_empty())?;
    let mut accounts = access.state.accounts().clone();
    for change in &changes {
        coordinators::require_permission(access, &accounts, change)?;
        require_unchanged(&accounts, change)?;
        accounts.change(change);
    }
    changes.iter().try_for_each(|change| validate_change(access.state, &accounts, change))?;
    Ok(Decision::done(match changes.is_empty() {
        true => Vec::new(),
        false => vec![Event::AccountsChanged { changes: Arc::new(changes) }],
    }))
}

/// Whether the record is still as the sender of the change saw it, and keeps its name.
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
        AccountChange::AssociationUse { .. } | AccountChange::ClassUse { .. } => Ok(()),
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

/// Puts components into another class: waiting ones (SL-C-36), and by operators also those of a job that has started, whatever
/// limits the class has (OAR-T-26).
pub(crate) fn change_class(access: &Access, jobs: &JobSelection, class: &str) -> Result<Decision, Refusal> {
    validate::name("class", class)?;
    let (mut entering, mut apart) = (Entering::default(), select::Apart::default());
    select::act_on(access, jobs, |target| {
        let task;
        let (job, component) = match target {
            Target::Task(array, index) => {
                task = apart.take(array, index)?;
                (&task, None)
            }
            Target::Component(job, component) => (job, Some(component)),
            Target::Job(job) | Target::Array(job) => (job, None),
        };
        let changed = || vec![Event::ClassChanged { job: target.id(), component, class: class.to_owned() }];
        if job.is_finished() {
            return Err(conflict(format!("job {} is over; its class stays", job.id)));
        }
        if !job.is_waiting() {
            access.require_operator("change the class of a job that has started")?;
            require_class(access.state.accounts(), class)?;
            return Ok(changed());
        }
        let concerns = |number: usize| component.is_none_or(|only| only as usize == number);
        let moved = |number: usize, charge: Charge| match concerns(number) {
            true => Charge { class: Some(class.into()), ..charge },
            false => charge,
        };
        entering.check_moved(access, job, concerns, moved)?;
        Ok(changed())
    })
}
