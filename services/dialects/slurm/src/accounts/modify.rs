//! `sacctmgr modify`.

use super::{
    AdminLevel, Key, Proposal, ROOT, Site,
    add::no_level,
    key,
    limits::{self, Extras, Of},
    names,
};
use crate::queries::sacctmgr::Sacctmgr;
use muster_schemas::accounts::{AccountChange, AssociationSpec, ClassSpec, DEFAULT_CLASS};

/// Which things to change: an empty list does not restrict them.
#[derive(Debug, Default)]
pub(super) struct Where {
    pub names: Vec<String>,
    pub accounts: Vec<String>,
    pub users: Vec<String>,
    pub partitions: Vec<String>,
    pub parents: Vec<String>,
    /// Whether a cluster other than this one was named.
    is_elsewhere: bool,
}

impl Where {
    /// The conditions of a command line; bare words are names of what the command is about.
    pub fn of(site: &Site<'_>, command: &Sacctmgr) -> Result<Self, Proposal> {
        let mut found = Self::default();
        for (word, value) in &command.wanted {
            match key(word) {
                Key::Name => found.names.extend(names(value)),
                Key::Account => found.accounts.extend(names(value)),
                Key::User => found.users.extend(names(value)),
                Key::Partition => found.partitions.extend(value.split(',').map(str::to_owned)),
                Key::Parent => found.parents.extend(names(value)),
                Key::Cluster => {
                    found.is_elsewhere |= !names(value).contains(&site.cluster.to_lowercase());
                }
                _ => {
                    let error = format!(" Unknown condition: {word}={value}\n Use keyword 'set' to modify value");
                    return Err(Proposal::refused(error));
                }
            }
        }
        Ok(found)
    }

    pub fn is_empty(&self) -> bool {
        let lists = [&self.names, &self.accounts, &self.users, &self.partitions, &self.parents];
        lists.iter().all(|list| list.is_empty()) && !self.is_elsewhere
    }

    pub fn is_elsewhere(&self) -> bool {
        self.is_elsewhere
    }
}

pub(super) fn takes(list: &[String], name: &str) -> bool {
    list.is_empty() || list.iter().any(|wanted| wanted == name)
}

/// Applies pairs to an association.
fn set_association(pairs: &[&(String, String)], spec: &mut AssociationSpec) -> Result<(), String> {
    let AssociationSpec { limits, classes, default_class, shares, .. } = spec;
    pairs.iter().try_for_each(|pair| {
        let mut extras = Extras {
            classes: Some(classes),
            default_class: Some(default_class),
            shares: Some(shares),
            ..Extras::default()
        };
        limits::set(pair, Of::Association, limits, &mut extras)
    })
}

/// A word and its value.
type Pair = (String, String);

/// Whether pairs begin the use of what they are about again from nothing, and the other pairs.
///
/// # Errors
/// The message, if the use should be anything but 0.
fn without_usage<'p>(pairs: impl Iterator<Item = &'p Pair>) -> Result<(bool, Vec<&'p Pair>), String> {
    let (usage, others): (Vec<_>, Vec<_>) =
        pairs.partition(|(key, _)| key.len() >= 7 && "rawusage".starts_with(&**key));
    match usage.iter().find(|(_, value)| value != "0") {
        Some((key, value)) => Err(format!("sacctmgr: error: Invalid value for {key} ({value}): use is only set to 0")),
        None => Ok((!usage.is_empty(), others)),
    }
}

fn begin(command: &Sacctmgr, condition: &Where) -> Result<Proposal, Proposal> {
    match command.set.is_empty() {
        true => Err(Proposal::refused(" You didn't give me anything to set")),
        false => Ok(Proposal { is_of_all: condition.is_empty(), ..Proposal::default() }),
    }
}

fn finish(proposal: Proposal) -> Proposal {
    match proposal.is_empty() && proposal.errors.is_empty() {
        true => Proposal::nothing("Nothing modified"),
        false => proposal,
    }
}

/// Changes associations by the pairs, and lists them.
fn change_associations<'p>(
    site: &Site<'p>,
    associations: impl Iterator<Item = &'p AssociationSpec>,
    pairs: &[&(String, String)],
    heading: &str,
    proposal: &mut Proposal,
) {
    if pairs.is_empty() {
        return;
    }
    let (forgets_use, pairs) = match without_usage(pairs.iter().copied()) {
        Ok(found) => found,
        Err(error) => return proposal.fail(error),
    };
    let mut is_told = false;
    for before in associations {
        let mut after = before.clone();
        if after.classes.is_empty() && pairs.iter().any(|pair| limits::changes_classes(pair)) {
            // Additions and removals apply to the list in force, which is that of an account.
            after.classes = site.classes_of(&before.of);
        }
        if let Err(error) = set_association(&pairs, &mut after) {
            return proposal.fail(error);
        }
        if !is_told {
            proposal.say(heading);
            is_told = true;
        }
        proposal.say(site.line(&before.of, 20));
        if after != *before {
            proposal.changes.push(AccountChange::Association { before: Some(before.clone()), after: Some(after) });
        }
        if forgets_use {
            proposal.changes.push(AccountChange::AssociationUse { of: before.of.clone() });
        }
    }
}

pub(super) fn accounts(site: &Site<'_>, command: &Sacctmgr) -> Proposal {
    changed_accounts(site, command).unwrap_or_else(|refused| refused)
}

fn changed_accounts(site: &Site<'_>, command: &Sacctmgr) -> Result<Proposal, Proposal> {
    let condition = Where::of(site, command)?;
    let mut proposal = begin(command, &condition)?;
    let is_meant = |name: &str| {
        !condition.is_elsewhere()
            && takes(&condition.names, name)
            && takes(&condition.accounts, name)
            && takes(&condition.parents, site.parent_of(name))
    };
    let of_account = |pair: &&(String, String)| matches!(key(&pair.0), Key::Description | Key::Organization);
    let of_tree = |pair: &&(String, String)| key(&pair.0) == Key::Parent;
    let told: Vec<&(String, String)> = command.set.iter().filter(of_account).collect();
    let parent = command.set.iter().rfind(of_tree).and_then(|pair| names(&pair.1).into_iter().next());
    let limits: Vec<&(String, String)> =
        command.set.iter().filter(|pair| !of_account(pair) && !of_tree(pair)).collect();
    if let Some(parent) = parent.as_ref().filter(|parent| !site.has_account(parent)) {
        return Err(Proposal::refused(format!(" Parent account '{parent}' doesn't exist on cluster {}", site.cluster)));
    }
    let meant: Vec<_> = site.page.accounts.iter().filter(|spec| is_meant(&spec.name)).collect();
    if !told.is_empty() && !meant.is_empty() {
        proposal.say(" Modified accounts...");
        meant.iter().for_each(|spec| proposal.say(format_args!("  {}", spec.name)));
    }
    if (!told.is_empty() || parent.is_some()) && !meant.is_empty() {
        for before in &meant {
            let mut after = (*before).clone();
            for (word, value) in &told {
                let slot = if key(word) == Key::Description { &mut after.description } else { &mut after.organisation };
                value.trim_matches(['"', '\'']).clone_into(slot);
            }
            if let Some(parent) = &parent {
                after.parent = Some(parent.clone()).filter(|parent| parent != ROOT);
            }
            if after != **before {
                proposal.changes.push(AccountChange::Account { before: Some((*before).clone()), after: Some(after) });
            }
        }
    }
    let of_meant = || site.page.associations.iter().filter(|spec| spec.of.user.is_none() && is_meant(&spec.of.account));
    if limits.is_empty() && parent.is_some() && !meant.is_empty() {
        proposal.say(" Modified account associations...");
        of_meant().for_each(|spec| proposal.say(site.line(&spec.of, 20)));
    }
    change_associations(site, of_meant(), &limits, " Modified account associations...", &mut proposal);
    Ok(finish(proposal))
}

pub(super) fn users(site: &Site<'_>, command: &Sacctmgr) -> Proposal {
    changed_users(site, command).unwrap_or_else(|refused| refused)
}

fn changed_users(site: &Site<'_>, command: &Sacctmgr) -> Result<Proposal, Proposal> {
    let condition = Where::of(site, command)?;
    let mut proposal = begin(command, &condition)?;
    let is_meant =
        |name: &str| !condition.is_elsewhere() && takes(&condition.names, name) && takes(&condition.users, name);
    let of_user = |pair: &&(String, String)| matches!(key(&pair.0), Key::DefaultAccount | Key::AdminLevel);
    let limits: Vec<&(String, String)> = command.set.iter().filter(|pair| !of_user(pair)).collect();
    let last = |wanted: Key| command.set.iter().rfind(|pair| key(&pair.0) == wanted);
    let account = last(Key::DefaultAccount).and_then(|pair| names(&pair.1).into_iter().next());
    if let Some((_, text)) = last(Key::AdminLevel) {
        let level = AdminLevel::parse(text).ok_or_else(|| no_level(text))?;
        let meant: Vec<&String> = site.page.users.iter().map(|user| &user.name).filter(|name| is_meant(name)).collect();
        if !meant.is_empty() {
            proposal.say(" Modified users...");
            meant.iter().for_each(|name| proposal.say(format_args!("  {name}")));
        }
        proposal.levels.extend(meant.into_iter().map(|name| (name.clone(), level)));
    }
    if let Some(account) = account {
        let meant: Vec<_> = site.page.users.iter().filter(|user| is_meant(&user.name)).collect();
        let strangers: Vec<String> = meant
            .iter()
            .filter(|user| !site.associations_of_user(&user.name).any(|spec| spec.of.account == account))
            .map(|user| format!("  U = {} C = {}", user.name, site.cluster))
            .collect();
        if !strangers.is_empty() {
            let head = " Can't modify because these users aren't associated with new default account";
            return Err(Proposal::refused(format!("{head} '{account}'...\n{}", strangers.join("\n"))));
        }
        let is_told = !proposal.levels.is_empty();
        if !meant.is_empty() && !is_told {
            proposal.say(" Modified users...");
        }
        for before in meant {
            if !is_told {
                proposal.say(format_args!("  {}", before.name));
            }
            let after = muster_schemas::accounts::UserSpec { default_account: account.clone(), ..before.clone() };
            if after != *before {
                proposal.changes.push(AccountChange::User { before: Some(before.clone()), after: Some(after) });
            }
        }
    }
    let of_meant = site.page.associations.iter().filter(|spec| {
        let queue = spec.of.queue.as_deref().unwrap_or_default();
        spec.of.user.as_deref().is_some_and(is_meant)
            && takes(&condition.accounts, &spec.of.account)
            && takes(&condition.partitions, queue)
    });
    change_associations(site, of_meant, &limits, " Modified user associations...", &mut proposal);
    Ok(finish(proposal))
}

pub(super) fn classes(site: &Site<'_>, command: &Sacctmgr) -> Proposal {
    changed_classes(site, command).unwrap_or_else(|refused| refused)
}

fn changed_classes(site: &Site<'_>, command: &Sacctmgr) -> Result<Proposal, Proposal> {
    let condition = Where::of(site, command)?;
    let mut proposal = begin(command, &condition)?;
    // Lists show this class before anybody made it, so it can also be changed.
    let unmade = ClassSpec {
        name: DEFAULT_CLASS.to_owned(),
        description: "Normal QOS default".to_owned(),
        ..ClassSpec::default()
    };
    let is_made = site.page.classes.iter().any(|class| class.name == DEFAULT_CLASS);
    let all = site.page.classes.iter().map(|class| (Some(class.clone()), class));
    let all = all.chain((!is_made).then_some((None, &unmade)));
    for (before, class) in all.filter(|(_, class)| takes(&condition.names, &class.name)) {
        let mut after = class.clone();
        let (forgets_use, pairs) = without_usage(command.set.iter()).map_err(Proposal::refused)?;
        for pair in pairs {
            if key(&pair.0) == Key::Description {
                pair.1.trim_matches(['"', '\'']).clone_into(&mut after.description);
                continue;
            }
            let (limits, mut extras) = Extras::of_class(&mut after);
            limits::set(pair, Of::Class, limits, &mut extras).map_err(Proposal::refused)?;
        }
        if proposal.said.is_empty() {
            proposal.say(" Modified qos...");
        }
        proposal.say(format_args!("  {}", class.name));
        if before.as_ref() != Some(&after) {
            proposal.changes.push(AccountChange::Class { before, after: Some(after) });
        }
        if forgets_use {
            proposal.changes.push(AccountChange::ClassUse { name: class.name.clone() });
        }
    }
    match proposal.said.is_empty() {
        true => Ok(finish(proposal)),
        false => Ok(proposal),
    }
}
