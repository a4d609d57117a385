//! `sacctmgr add coordinator` and `delete coordinator`.

use super::{Proposal, Site, modify::Where};
use crate::queries::sacctmgr::{Deed, Sacctmgr};
use muster_schemas::accounts::{AccountChange, AccountSpec};

pub(super) fn change(site: &Site<'_>, command: &Sacctmgr) -> Proposal {
    let changed = match command.deed {
        Deed::Add => added(site, command),
        Deed::Delete => removed(site, command),
        Deed::Show | Deed::Modify => Err(Proposal::refused(" No valid entity in modify command: coordinator")),
    };
    changed.unwrap_or_else(|refused| refused)
}

/// The users and accounts that a command line names.
struct Named {
    users: Vec<String>,
    accounts: Vec<String>,
}

impl Named {
    fn of(site: &Site<'_>, command: &Sacctmgr) -> Result<Self, Proposal> {
        let Where { names, users, accounts, .. } = Where::of(site, command)?;
        let named = Self { users: names.into_iter().chain(users).collect(), accounts };
        let unknown = named.accounts.iter().find(|name| !site.page.accounts.iter().any(|spec| spec.name == **name));
        match unknown {
            Some(name) => Err(Proposal::refused(format!(" This account '{name}' doesn't exist."))),
            None => Ok(named),
        }
    }

    fn say(names: &[String], proposal: &mut Proposal) {
        names.iter().for_each(|name| proposal.say(format_args!("  {name}")));
    }
}

/// An account with other coordinators, if they are others.
fn changed(before: &AccountSpec, coordinators: Vec<String>) -> Option<AccountChange> {
    (coordinators != before.coordinators).then(|| AccountChange::Account {
        before: Some(before.clone()),
        after: Some(AccountSpec { coordinators, ..before.clone() }),
    })
}

fn added(site: &Site<'_>, command: &Sacctmgr) -> Result<Proposal, Proposal> {
    let named = Named::of(site, command)?;
    if named.users.is_empty() {
        return Err(Proposal::refused(" You need to specify a user list here."));
    }
    if named.accounts.is_empty() {
        return Err(Proposal::refused(" You need to specify a account list here."));
    }
    if let Some(stranger) = named.users.iter().find(|name| !site.page.users.iter().any(|user| user.name == **name)) {
        return Err(Proposal::refused(format!(" You specified a non-existant user '{stranger}'.")));
    }
    let mut proposal = Proposal::default();
    proposal.say(" Adding Coordinator User(s)");
    Named::say(&named.users, &mut proposal);
    proposal.say(" To Account(s) and all sub-accounts");
    Named::say(&named.accounts, &mut proposal);
    for before in site.page.accounts.iter().filter(|spec| named.accounts.contains(&spec.name)) {
        let new = named.users.iter().filter(|name| !before.coordinators.contains(name)).cloned();
        let mut coordinators: Vec<String> = before.coordinators.iter().cloned().chain(new).collect();
        coordinators.sort();
        proposal.changes.extend(changed(before, coordinators));
    }
    match proposal.changes.is_empty() {
        true => Ok(Proposal::nothing("Nothing new added.")),
        false => Ok(proposal),
    }
}

fn removed(site: &Site<'_>, command: &Sacctmgr) -> Result<Proposal, Proposal> {
    let named = Named::of(site, command)?;
    let mut proposal = Proposal::default();
    match (named.users.is_empty(), named.accounts.is_empty()) {
        (true, true) => {
            return Err(Proposal::refused(" You need to specify a user list or an account list here."));
        }
        (true, false) => {
            proposal.say(" Removing all users from Accounts");
            Named::say(&named.accounts, &mut proposal);
        }
        (false, no_accounts) => {
            proposal.say(" Removing Coordinators with user name");
            Named::say(&named.users, &mut proposal);
            proposal.say(if no_accounts { " From all accounts" } else { " From Account(s)" });
            Named::say(&named.accounts, &mut proposal);
        }
    }
    let is_meant = |list: &[String], name: &String| list.is_empty() || list.contains(name);
    let mut lines = Vec::new();
    for before in site.page.accounts.iter().filter(|spec| is_meant(&named.accounts, &spec.name)) {
        let (gone, left): (Vec<String>, Vec<String>) =
            before.coordinators.iter().cloned().partition(|name| is_meant(&named.users, name));
        lines.extend(gone.iter().map(|name| format!("  U = {name:<9.9} A = {:<10.10}", before.name)));
        proposal.changes.extend(changed(before, left));
    }
    if proposal.changes.is_empty() {
        proposal.say(" Nothing removed");
        return Ok(proposal);
    }
    proposal.say(" Removed Coordinators (sub accounts not listed)...");
    lines.into_iter().for_each(|line| proposal.say(line));
    Ok(proposal)
}
