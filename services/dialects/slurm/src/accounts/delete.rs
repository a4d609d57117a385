//! `sacctmgr delete`.

use super::{
    Proposal, ROOT, Site,
    modify::{Where, takes},
};
use crate::queries::sacctmgr::Sacctmgr;
use muster_schemas::accounts::{AccountChange, AccountSpec, AssociationSpec, ClassSpec, UserSpec};

fn conditions(site: &Site<'_>, command: &Sacctmgr) -> Result<Where, Proposal> {
    let condition = Where::of(site, command)?;
    match condition.is_empty() {
        true => Err(Proposal::refused(" No conditions given to remove, not executing.")),
        false => Ok(condition),
    }
}

fn finish(proposal: Proposal) -> Proposal {
    match proposal.changes.is_empty() && proposal.errors.is_empty() {
        true => Proposal::nothing("Nothing deleted"),
        false => proposal,
    }
}

fn removed(spec: &AssociationSpec) -> AccountChange {
    AccountChange::Association { before: Some(spec.clone()), after: None }
}

fn removed_user(user: &UserSpec) -> AccountChange {
    AccountChange::User { before: Some(user.clone()), after: None }
}

pub(super) fn accounts(site: &Site<'_>, command: &Sacctmgr) -> Proposal {
    deleted_accounts(site, command).unwrap_or_else(|refused| refused)
}

fn deleted_accounts(site: &Site<'_>, command: &Sacctmgr) -> Result<Proposal, Proposal> {
    let condition = conditions(site, command)?;
    if [&condition.names, &condition.accounts].iter().any(|list| list.iter().any(|name| name == ROOT)) {
        let error = " You are not allowed to remove the root account.\n Use remove cluster instead.";
        return Err(Proposal::refused(error));
    }
    let is_named = |name: &str| {
        !condition.is_elsewhere()
            && takes(&condition.names, name)
            && takes(&condition.accounts, name)
            && takes(&condition.parents, site.parent_of(name))
    };
    // Everything below an account is deleted with it.
    let is_below = |name: &str| {
        let mut above = name;
        for _ in 0..site.page.accounts.len() + 1 {
            if is_named(above) {
                return true;
            }
            above = site.parent_of(above);
            if above == ROOT {
                return false;
            }
        }
        false
    };
    let mut doomed: Vec<_> = site.page.accounts.iter().filter(|spec| is_below(&spec.name)).collect();
    let goes = |account: &str| doomed.iter().any(|spec| spec.name == account);
    let (mut users, mut kept) = (Vec::new(), Vec::new());
    for user in site.page.users.iter().filter(|user| goes(&user.default_account)) {
        match site.associations_of_user(&user.name).any(|spec| !goes(&spec.of.account)) {
            true => {
                kept.push(format!("  C = {:<10} A = {:<10} U = {:<9}", site.cluster, user.default_account, user.name))
            }
            false => users.push(user),
        }
    }
    if !kept.is_empty() {
        let tail = " Please either remove the accounts listed above from list and resubmit,\n or change these users' \
                    default accounts to remove the account(s).\n Changes Discarded";
        let head = " Error with request: You can not remove the default account of a user";
        return Err(Proposal::refused(format!("{head}\n{}\n{tail}", kept.join("\n"))));
    }
    let mut proposal = Proposal::default();
    let associations = site.page.associations.iter().filter(|spec| goes(&spec.of.account));
    proposal.changes.extend(associations.map(removed));
    proposal.changes.extend(users.into_iter().map(removed_user));
    if !doomed.is_empty() {
        proposal.say(" Deleting accounts...");
    }
    doomed.iter().filter(|spec| is_named(&spec.name)).for_each(|spec| proposal.say(format_args!("  {}", spec.name)));
    // Children before their parents.
    while let Some(at) =
        doomed.iter().position(|spec| doomed.iter().all(|other| other.parent.as_ref() != Some(&spec.name)))
    {
        let spec = doomed.remove(at);
        proposal.changes.push(AccountChange::Account { before: Some(spec.clone()), after: None });
    }
    Ok(finish(proposal))
}

pub(super) fn users(site: &Site<'_>, command: &Sacctmgr) -> Proposal {
    deleted_users(site, command).unwrap_or_else(|refused| refused)
}

fn deleted_users(site: &Site<'_>, command: &Sacctmgr) -> Result<Proposal, Proposal> {
    let condition = conditions(site, command)?;
    let is_named =
        |name: &str| !condition.is_elsewhere() && takes(&condition.names, name) && takes(&condition.users, name);
    let is_whole = condition.accounts.is_empty() && condition.partitions.is_empty();
    let is_meant = |spec: &&AssociationSpec| {
        spec.of.user.as_deref().is_some_and(is_named)
            && takes(&condition.accounts, &spec.of.account)
            && takes(&condition.partitions, spec.of.queue.as_deref().unwrap_or_default())
    };
    let doomed: Vec<&AssociationSpec> = site.page.associations.iter().filter(is_meant).collect();
    let mut proposal = Proposal::default();
    proposal.changes.extend(doomed.iter().map(|spec| removed(spec)));
    if !is_whole && !doomed.is_empty() {
        proposal.say(" Deleting user associations...");
        doomed.iter().for_each(|spec| proposal.say(site.line(&spec.of, 10)));
    }
    let mut gone = Vec::new();
    for user in site.page.users.iter().filter(|user| is_named(&user.name)) {
        let left: Vec<_> = site.associations_of_user(&user.name).filter(|spec| !doomed.contains(spec)).collect();
        let loses_default = doomed
            .iter()
            .any(|spec| spec.of.user.as_ref() == Some(&user.name) && spec.of.account == user.default_account);
        if left.is_empty() {
            gone.push(user);
        } else if loses_default && left.iter().all(|spec| spec.of.account != user.default_account) {
            let head = " Error with request: You can not remove the default account of a user";
            let line = format!("  C = {:<10} A = {:<10} U = {:<9}", site.cluster, user.default_account, user.name);
            proposal.fail(format!("{head}\n{line}"));
        }
    }
    let names: Vec<&str> = gone.iter().map(|user| user.name.as_str()).collect();
    proposal.changes.extend(without_coordinators(site, &names));
    proposal.changes.extend(gone.iter().map(|user| removed_user(user)));
    if is_whole && !gone.is_empty() {
        proposal.say(" Deleting users...");
        gone.iter().for_each(|user| proposal.say(format_args!("  {}", user.name)));
    }
    Ok(finish(proposal))
}

/// The accounts without coordinators that are no longer there.
fn without_coordinators(site: &Site<'_>, gone: &[&str]) -> Vec<AccountChange> {
    let is_gone = |name: &String| gone.contains(&name.as_str());
    let concerned = site.page.accounts.iter().filter(|spec| spec.coordinators.iter().any(is_gone));
    let changed = concerned.map(|before| {
        let coordinators = before.coordinators.iter().filter(|name| !is_gone(name)).cloned().collect();
        let after = AccountSpec { coordinators, ..before.clone() };
        AccountChange::Account { before: Some(before.clone()), after: Some(after) }
    });
    changed.collect()
}

pub(super) fn classes(site: &Site<'_>, command: &Sacctmgr) -> Proposal {
    deleted_classes(site, command).unwrap_or_else(|refused| refused)
}

fn deleted_classes(site: &Site<'_>, command: &Sacctmgr) -> Result<Proposal, Proposal> {
    let condition = conditions(site, command)?;
    let mut proposal = Proposal::default();
    let goes = |name: &str| takes(&condition.names, name);
    // Those that stay no longer preempt those that go.
    for before in site.page.classes.iter().filter(|class| !goes(&class.name)) {
        let preempts: Vec<String> = before.preempts.iter().filter(|name| !goes(name)).cloned().collect();
        if preempts != before.preempts {
            let after = ClassSpec { preempts, ..before.clone() };
            proposal.changes.push(AccountChange::Class { before: Some(before.clone()), after: Some(after) });
        }
    }
    for class in site.page.classes.iter().filter(|class| goes(&class.name)) {
        if proposal.said.is_empty() {
            proposal.say(" Deleting QOS(s)...");
        }
        proposal.say(format_args!("  {}", class.name));
        proposal.changes.push(AccountChange::Class { before: Some(class.clone()), after: None });
    }
    Ok(finish(proposal))
}
