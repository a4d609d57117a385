//! `sacctmgr add`.

use super::{
    AdminLevel, Key, Proposal, ROOT, Site, key,
    limits::{self, Extras, Of},
    names,
};
use crate::{duration, queries::sacctmgr::Sacctmgr};
use muster_schemas::accounts::{AccountChange, AccountSpec, AssociationKey, AssociationSpec, ClassSpec, UserSpec};

/// The pairs of a command line.
#[derive(Debug, Default)]
struct Wanted {
    names: Vec<String>,
    accounts: Vec<String>,
    partitions: Vec<String>,
    description: Option<String>,
    organization: Option<String>,
    parent: Option<String>,
    default_account: Option<String>,
    level: Option<AdminLevel>,
    /// Limits, classes and shares of the associations.
    association: AssociationSpec,
}

fn wanted(site: &Site<'_>, command: &Sacctmgr, names_are: Key) -> Result<Wanted, Proposal> {
    let mut wanted =
        Wanted { association: AssociationSpec { shares: 1, ..AssociationSpec::default() }, ..Wanted::default() };
    for pair in command.wanted.iter().chain(&command.set) {
        let value = || pair.1.trim_matches(['"', '\'']).to_owned();
        let known = key(&pair.0);
        match known {
            Key::Name => wanted.names.extend(names(&pair.1)),
            known if known == names_are => wanted.names.extend(names(&pair.1)),
            Key::Account => wanted.accounts.extend(names(&pair.1)),
            Key::Partition => wanted.partitions.extend(pair.1.split(',').map(str::to_owned)),
            Key::Description => wanted.description = Some(value()),
            Key::Organization => wanted.organization = Some(value()),
            Key::Parent => wanted.parent = names(&pair.1).into_iter().next(),
            Key::DefaultAccount => wanted.default_account = names(&pair.1).into_iter().next(),
            Key::Cluster if names(&pair.1).iter().any(|name| *name != site.cluster.to_lowercase()) => {
                let error = format!(
                    " This cluster '{}' doesn't exist.\n        Contact your admin to add it to accounting.",
                    pair.1
                );
                return Err(Proposal::refused(error));
            }
            Key::Cluster => {}
            Key::AdminLevel => match AdminLevel::parse(&pair.1) {
                Some(level) => wanted.level = Some(level),
                None => return Err(no_level(&pair.1)),
            },
            Key::User | Key::Other => {
                let AssociationSpec { limits, classes, default_class, shares, .. } = &mut wanted.association;
                let mut extras = Extras {
                    classes: Some(classes),
                    default_class: Some(default_class),
                    shares: Some(shares),
                    ..Extras::default()
                };
                limits::set(pair, Of::Association, limits, &mut extras).map_err(Proposal::refused)?;
            }
        }
    }
    Ok(wanted)
}

/// The message about a word that is no level of administrators.
pub(super) fn no_level(text: &str) -> Proposal {
    Proposal::refused(format!(" Invalid admin level: {text}\n Use None, Operator or Administrator"))
}

pub(super) fn accounts(site: &Site<'_>, command: &Sacctmgr) -> Proposal {
    let wanted = match wanted(site, command, Key::Account) {
        Ok(wanted) => wanted,
        Err(refused) => return refused,
    };
    if wanted.names.is_empty() {
        return Proposal::refused(" Need name of account to add.");
    }
    let parent = wanted.parent.as_deref().unwrap_or(ROOT);
    let new: Vec<&String> = wanted.names.iter().filter(|name| !site.has_account(name)).collect();
    if new.is_empty() {
        return Proposal::nothing("Nothing new added.");
    }
    if !site.has_account(parent) {
        return Proposal::refused(format!(
            " Parent account '{parent}' doesn't exist on cluster {}\n        Contact your admin to add this account.",
            site.cluster
        ));
    }
    let mut proposal = Proposal::default();
    proposal.say(" Adding Account(s)");
    new.iter().for_each(|name| proposal.say(format_args!("  {name}")));
    proposal.say(" Settings");
    proposal.say(format_args!("  Description     = {}", wanted.description.as_deref().unwrap_or("Account Name")));
    proposal
        .say(format_args!("  Organization    = {}", wanted.organization.as_deref().unwrap_or("Parent/Account Name")));
    proposal.say(" Associations");
    for name in new {
        proposal.say(format_args!("  A = {:<10.10} C = {:<10.10}", name, site.cluster));
        let above = Some(parent).filter(|parent| *parent != ROOT).map(str::to_owned);
        let account = AccountSpec {
            name: name.clone(),
            description: wanted.description.clone().unwrap_or_else(|| name.clone()),
            organisation: wanted.organization.clone().or_else(|| above.clone()).unwrap_or_else(|| name.clone()),
            parent: above,
            coordinators: Vec::new(),
        };
        let of = AssociationKey { account: name.clone(), ..AssociationKey::default() };
        let association = AssociationSpec { of, ..wanted.association.clone() };
        proposal.changes.push(AccountChange::Account { before: None, after: Some(account) });
        proposal.changes.push(AccountChange::Association { before: None, after: Some(association) });
    }
    let set = association_lines(&wanted.association);
    if !set.is_empty() {
        proposal.say(" Settings");
        set.iter().for_each(|line| proposal.say(line));
    }
    proposal
}

fn association_lines(spec: &AssociationSpec) -> Vec<String> {
    let shares = (spec.shares != 1).then(|| format!("  {:<13} = {}", "Fairshare", spec.shares));
    let class = spec.default_class.as_ref().map(|class| format!("  {:<13} = {class}", "DefQOS"));
    let classes = (!spec.classes.is_empty()).then(|| format!("  {:<13} = {}", "QOS", spec.classes.join(",")));
    shares.into_iter().chain(limits::lines(&spec.limits, Of::Association)).chain(class).chain(classes).collect()
}

pub(super) fn users(site: &Site<'_>, command: &Sacctmgr) -> Proposal {
    let mut wanted = match wanted(site, command, Key::User) {
        Ok(wanted) => wanted,
        Err(refused) => return refused,
    };
    if wanted.names.is_empty() {
        return Proposal::refused(" Need name of user to add.");
    }
    wanted.accounts.extend(
        wanted.default_account.iter().filter(|name| !wanted.accounts.contains(name)).cloned().collect::<Vec<_>>(),
    );
    let Some(first) = wanted.accounts.first().cloned() else {
        return Proposal::refused(" Need name of account to add user to.");
    };
    let mut proposal = Proposal::default();
    for account in wanted.accounts.iter().filter(|name| *name == ROOT || !site.has_account(name)) {
        proposal
            .fail(format!(" This account '{account}' doesn't exist.\n        Contact your admin to add this account."));
    }
    if !proposal.errors.is_empty() {
        return proposal;
    }
    let is_known = |name: &String| site.page.users.iter().any(|user| user.name == *name);
    let new: Vec<String> = wanted.names.iter().filter(|name| !is_known(name)).cloned().collect();
    let queues: Vec<Option<String>> = match wanted.partitions.is_empty() {
        true => vec![None],
        false => wanted.partitions.iter().cloned().map(Some).collect(),
    };
    let mut added = Vec::new();
    for user in &wanted.names {
        for account in &wanted.accounts {
            for queue in &queues {
                let of = AssociationKey { account: account.clone(), user: Some(user.clone()), queue: queue.clone() };
                if site.association(&of).is_none() {
                    added.push(of);
                }
            }
        }
    }
    if added.is_empty() && new.is_empty() {
        return Proposal::nothing("Nothing new added.");
    }
    if !new.is_empty() {
        proposal.say(" Adding User(s)");
        new.iter().for_each(|name| proposal.say(format_args!("  {name}")));
        let account = wanted.default_account.as_ref().map(|account| format!("  Default Account = {account}"));
        let level = wanted.level.filter(|level| *level != AdminLevel::None);
        let level = level.map(|level| format!("  Admin Level     = {}", level.shown()));
        if account.is_some() || level.is_some() {
            proposal.say(" Settings =");
            account.into_iter().chain(level).for_each(|line| proposal.say(line));
        }
    }
    if let Some(level) = wanted.level.filter(|level| *level != AdminLevel::None) {
        proposal.levels.extend(new.iter().map(|name| (name.clone(), level)));
    }
    for name in new {
        let default_account = wanted.default_account.clone().unwrap_or_else(|| first.clone());
        proposal.changes.push(AccountChange::User { before: None, after: Some(UserSpec { name, default_account }) });
    }
    proposal.say(" Associations =");
    for of in added {
        let (user, account) = (of.user.as_deref().unwrap_or_default(), &of.account);
        let partition = of.queue.as_ref().map(|queue| format!(" P = {queue:<10.10}")).unwrap_or_default();
        proposal.say(format_args!("  U = {user:<9.9} A = {account:<10.10} C = {:<10.10}{partition}", site.cluster));
        let after = AssociationSpec { of, ..wanted.association.clone() };
        proposal.changes.push(AccountChange::Association { before: None, after: Some(after) });
    }
    let set = association_lines(&wanted.association);
    if !set.is_empty() {
        proposal.say(" Non Default Settings");
        set.iter().for_each(|line| proposal.say(line));
    }
    proposal
}

pub(super) fn classes(site: &Site<'_>, command: &Sacctmgr) -> Proposal {
    let mut class = ClassSpec::default();
    let (mut wanted, mut description) = (Vec::new(), None);
    for pair in command.wanted.iter().chain(&command.set) {
        match key(&pair.0) {
            Key::Name => wanted.extend(names(&pair.1)),
            Key::Description => description = Some(pair.1.trim_matches(['"', '\'']).to_owned()),
            _ => {
                let (limits, mut extras) = Extras::of_class(&mut class);
                if let Err(error) = limits::set(pair, Of::Class, limits, &mut extras) {
                    return Proposal::refused(error);
                }
            }
        }
    }
    if wanted.is_empty() {
        return Proposal::refused(" Need name of qos to add.");
    }
    let known = |name: &String| site.page.classes.iter().any(|class| class.name == *name);
    let new: Vec<String> = wanted.into_iter().filter(|name| !known(name)).collect();
    let Some(last) = new.last() else { return Proposal::nothing("Nothing new added.") };
    let mut proposal = Proposal::default();
    proposal.say(" Adding QOS(s)");
    new.iter().for_each(|name| proposal.say(format_args!("  {name}")));
    proposal.say(" Settings");
    proposal.say(format_args!("  Description    = {}", description.as_ref().unwrap_or(last)));
    if class.refuses_hopeless {
        proposal.say(format_args!("  {:<24} = DenyOnLimit", "Flags"));
    }
    if class.preemption_grace_seconds != 0 {
        let grace = duration::long(class.preemption_grace_seconds.into());
        proposal.say(format_args!("  {:<24} = {grace}", "GraceTime"));
    }
    limits::lines(&class.limits, Of::Class).iter().for_each(|line| proposal.say(line));
    if !class.preempts.is_empty() {
        proposal.say(format_args!("  {:<24} = {}", "Preempt", class.preempts.join(",")));
    }
    if class.cancels_preempted || class.suspends_preempted {
        let mode = if class.suspends_preempted { "suspend" } else { "cancel" };
        proposal.say(format_args!("  {:<24} = {mode}", "PreemptMode"));
    }
    if class.priority != 0 {
        proposal.say(format_args!("  {:<24} = {}", "Priority", class.priority));
    }
    for name in new {
        let description = description.clone().unwrap_or_else(|| name.clone());
        let after = ClassSpec { name, description, ..class.clone() };
        proposal.changes.push(AccountChange::Class { before: None, after: Some(after) });
    }
    proposal
}
