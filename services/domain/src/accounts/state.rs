//! Accounts, users, associations and service classes, and the limits they put on a component.

use crate::jobs::{Component, Job};
use muster_schemas::accounts::{
    AccountChange, AccountSettings, AccountSpec, AssociationKey, AssociationSpec, ClassSpec, DEFAULT_CLASS, UserSpec,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// The greatest depth of nested accounts.
pub(crate) const MAX_DEPTH: usize = 32;

/// All accounts, users, associations and classes of a cluster, and what is enforced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accounts {
    pub(crate) settings: Arc<AccountSettings>,
    pub(crate) accounts: BTreeMap<String, Arc<AccountSpec>>,
    pub(crate) users: BTreeMap<String, Arc<UserSpec>>,
    pub(crate) associations: BTreeMap<AssociationKey, Arc<AssociationSpec>>,
    pub(crate) classes: BTreeMap<String, Arc<ClassSpec>>,
}

/// The associations that count for a user, nearest first.
type Chain<'a> = [(AssociationKey, Option<&'a AssociationSpec>)];

/// The nearest list of classes.
fn listed<'a>(chain: &Chain<'a>) -> Option<&'a [String]> {
    let mut lists = chain.iter().filter_map(|(_, spec)| Some(spec.as_ref()?.classes.as_slice()));
    lists.find(|list| !list.is_empty())
}

/// The class that a component counts for when others preempt it.
pub(crate) fn class_of(component: &Component) -> &str {
    component.class().map_or(DEFAULT_CLASS, |class| &**class)
}

fn is_allowed(chain: &Chain<'_>, class: &str) -> bool {
    listed(chain).map_or(class == DEFAULT_CLASS, |list| list.iter().any(|allowed| allowed == class))
}

impl Accounts {
    /// The checks that are enforced.
    pub fn settings(&self) -> &AccountSettings {
        &self.settings
    }

    /// All accounts, by name.
    pub fn accounts(&self) -> impl ExactSizeIterator<Item = &AccountSpec> {
        self.accounts.values().map(|spec| &**spec)
    }

    /// All users known to the accounts, by name.
    pub fn users(&self) -> impl ExactSizeIterator<Item = &UserSpec> {
        self.users.values().map(|spec| &**spec)
    }

    /// All associations, by account, user and queue.
    pub fn associations(&self) -> impl ExactSizeIterator<Item = &AssociationSpec> {
        self.associations.values().map(|spec| &**spec)
    }

    /// All service classes, by name.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = &ClassSpec> {
        self.classes.values().map(|spec| &**spec)
    }

    /// A service class.
    pub fn class(&self, name: &str) -> Option<&ClassSpec> {
        self.classes.get(name).map(|spec| &**spec)
    }

    /// The account of a user's components that name none.
    pub fn default_account(&self, user: &str) -> Option<&str> {
        self.users.get(user).map(|spec| spec.default_account.as_str())
    }

    /// The association that admits a user to an account in a queue.
    pub fn association(&self, account: &str, user: &str, queue: &str) -> Option<&AssociationSpec> {
        let (_, spec) = self.chain(account, user, queue).into_iter().next()?;
        spec
    }

    /// The class of components that name none: the association's default, the only one of its list, or the one called
    /// `normal`.
    pub fn default_class(&self, account: Option<&str>, user: &str, queue: &str) -> Option<&str> {
        let chain = account.map(|account| self.chain(account, user, queue)).unwrap_or_default();
        let told = chain.iter().find_map(|(_, spec)| spec.as_ref()?.default_class.as_deref());
        let only = || match listed(&chain) {
            Some([only]) => Some(only.as_str()),
            _ => None,
        };
        told.or_else(only).or_else(|| self.classes.contains_key(DEFAULT_CLASS).then_some(DEFAULT_CLASS))
    }

    /// Whether a user on an account in a queue may use a class. The list of the association decides, else that of its
    /// account, else those of the accounts above. Without any list, associations may use `normal`, and users without an
    /// association any class.
    pub fn may_use(&self, account: Option<&str>, user: &str, queue: &str, class: &str) -> bool {
        let chain = account.map(|account| self.chain(account, user, queue)).unwrap_or_default();
        let has_association = chain.first().is_some_and(|(_, own)| own.is_some());
        !has_association && listed(&chain).is_none() || is_allowed(&chain, class)
    }

    /// Whether the list that counts for an association, its own or an account's, contains a class.
    pub fn has_in_list(&self, of: &AssociationKey, class: &str) -> bool {
        let (user, queue) = (of.user.as_deref().unwrap_or_default(), of.queue.as_deref().unwrap_or_default());
        is_allowed(&self.chain(&of.account, user, queue), class)
    }

    /// Whether the accounts above an association let it use a class: the nearest list decides, and without any it is
    /// `normal`.
    pub(crate) fn is_class_above(&self, of: &AssociationKey, class: &str) -> bool {
        let chain = self.chain(&of.account, of.user.as_deref().unwrap_or_default(), "");
        let own = |key: &AssociationKey| key.user.is_some() || (of.user.is_none() && key.account == of.account);
        let above: Vec<_> = chain.into_iter().filter(|(key, _)| !own(key)).collect();
        is_allowed(&above, class)
    }

    /// The association of a user in an account, then those of the account as a whole and of its parents. The first has
    /// no spec if the user has no association.
    pub(crate) fn chain(
        &self,
        account: &str,
        user: &str,
        queue: &str,
    ) -> Vec<(AssociationKey, Option<&AssociationSpec>)> {
        let of = |queue: Option<&str>| AssociationKey {
            account: account.to_owned(),
            user: Some(user.to_owned()),
            queue: queue.map(str::to_owned),
        };
        let find = |key: &AssociationKey| self.associations.get(key).map(|spec| &**spec);
        let own = [of(Some(queue)), of(None)].into_iter().find(|key| self.associations.contains_key(key));
        let own = own.unwrap_or_else(|| of(None));
        let mut chain = vec![(own.clone(), find(&own))];
        let mut account = Some(account);
        while let Some(name) = account.filter(|_| chain.len() <= MAX_DEPTH) {
            let key = AssociationKey { account: name.to_owned(), user: None, queue: None };
            let spec = find(&key);
            chain.push((key, spec));
            account = self.accounts.get(name).and_then(|spec| spec.parent.as_deref());
        }
        chain
    }

    /// Whether an account is another, or below it.
    pub(crate) fn is_within(&self, account: &str, above: &str) -> bool {
        let mut at = Some(account);
        for _ in 0..=MAX_DEPTH {
            match at {
                Some(name) if name == above => return true,
                Some(name) => at = self.accounts.get(name).and_then(|spec| spec.parent.as_deref()),
                None => return false,
            }
        }
        false
    }

    /// Whether a user coordinates an account, or one above it.
    pub(crate) fn coordinates(&self, user: &str, account: &str) -> bool {
        let mut above = Some(account);
        for _ in 0..=MAX_DEPTH {
            let Some(spec) = above.and_then(|name| self.accounts.get(name)) else { return false };
            if spec.coordinators.iter().any(|name| name == user) {
                return true;
            }
            above = spec.parent.as_deref();
        }
        false
    }

    /// The classes whose running jobs make way for jobs of all of these classes.
    pub fn preempted_by<'c>(&self, classes: impl Iterator<Item = Option<&'c str>>) -> Vec<&str> {
        let of = |class: Option<&str>| {
            self.class(class.unwrap_or(DEFAULT_CLASS)).map_or(&[][..], |class| class.preempts.as_slice())
        };
        let mut lists = classes.map(of);
        let first = lists.next().unwrap_or_default();
        let rest: Vec<&[String]> = lists.collect();
        first.iter().filter(|name| rest.iter().all(|list| list.contains(name))).map(String::as_str).collect()
    }

    /// Whether the jobs of a class make way for those of any other.
    pub fn is_preempted(&self, class: &str) -> bool {
        self.classes().any(|other| other.preempts.iter().any(|name| name == class))
    }

    /// Whether a running job makes way for another because of their classes.
    pub(crate) fn makes_way(&self, victim: &Job, gains: &Job) -> bool {
        let preempted =
            self.preempted_by(gains.components.iter().map(|component| component.class().map(|class| &**class)));
        victim.components.iter().all(|component| preempted.contains(&class_of(component)))
    }

    /// Whether a job that makes way is cancelled.
    pub(crate) fn cancels_preempted(&self, job: &Job) -> bool {
        job.components
            .iter()
            .any(|component| self.class(class_of(component)).is_some_and(|class| class.cancels_preempted))
    }

    /// Whether a job that makes way is suspended, if that is possible: the classes of all its components say so.
    pub(crate) fn suspends_preempted(&self, job: &Job) -> bool {
        job.components
            .iter()
            .all(|component| self.class(class_of(component)).is_some_and(|class| class.suspends_preempted))
    }

    /// How much longer than others a job that makes way has between SIGTERM and SIGKILL, in seconds.
    pub(crate) fn preemption_grace_seconds(&self, job: &Job) -> u32 {
        let classes = job.components.iter().filter_map(|component| self.class(class_of(component)));
        classes.map(|class| class.preemption_grace_seconds).max().unwrap_or(0)
    }

    /// Whether a user coordinates any account.
    pub(crate) fn has_coordinator(&self, user: &str) -> bool {
        self.accounts.values().any(|spec| spec.coordinators.iter().any(|name| name == user))
    }

    /// Makes a change.
    pub(crate) fn change(&mut self, change: &AccountChange) {
        match change {
            AccountChange::Account { before, after } => {
                put(&mut self.accounts, before, after, |spec| spec.name.clone());
            }
            AccountChange::User { before, after } => put(&mut self.users, before, after, |spec| spec.name.clone()),
            AccountChange::Association { before, after } => {
                put(&mut self.associations, before, after, |spec| spec.of.clone());
            }
            AccountChange::Class { before, after } => put(&mut self.classes, before, after, |spec| spec.name.clone()),
            // Use is no part of the records.
            AccountChange::AssociationUse { .. } | AccountChange::ClassUse { .. } => {}
        }
    }

    /// The amount added to the priority of a component.
    pub fn class_priority(&self, component: &Component) -> i64 {
        if self.classes.is_empty() {
            return 0;
        }
        component.class().and_then(|name| self.classes.get(&**name)).map_or(0, |class| class.priority)
    }
}

fn put<K: Ord, T: Clone>(map: &mut BTreeMap<K, Arc<T>>, before: &Option<T>, after: &Option<T>, key: impl Fn(&T) -> K) {
    if let Some(before) = before {
        map.remove(&key(before));
    }
    if let Some(after) = after {
        map.insert(key(after), Arc::new(after.clone()));
    }
}
