//! Permission to change accounts: operators have it for all of them, coordinators for theirs and those below.
//!
//! A coordinator adds users and accounts below, gives them limits and takes them out again, and names further
//! coordinators. What holds for a coordinated account as a whole comes from above, unless it lies below another that
//! the user coordinates.

use crate::{accounts::Accounts, decide::Access};
use muster_schemas::{
    accounts::{AccountChange, AccountSpec, AssociationKey, AssociationSpec, UserSpec},
    command::Refusal,
    event::Actor,
};

/// Refuses an actor who may change nothing.
pub(super) fn require_any(access: &Access, is_empty: bool) -> Result<(), Refusal> {
    let coordinates = |user: &str| access.state.accounts().has_coordinator(user);
    match access.actor {
        Actor::User(owner) if !is_empty && coordinates(&owner.user) => Ok(()),
        _ => access.require_operator("change accounts, associations and classes"),
    }
}

/// Refuses a change that the actor may not make. `accounts` is as it is before the change.
pub(super) fn require_permission(access: &Access, accounts: &Accounts, change: &AccountChange) -> Result<(), Refusal> {
    let Actor::User(owner) = access.actor else {
        return access.require_operator("change accounts, associations and classes");
    };
    let user = Coordinator { accounts, name: &owner.user };
    let may = match change {
        AccountChange::Account { before, after } => user.may_change_account(before.as_ref(), after.as_ref()),
        AccountChange::User { before, after } => user.may_change_user(before.as_ref(), after.as_ref()),
        AccountChange::Association { before, after } => {
            before.iter().chain(after).all(|spec| user.may_change_limits(&spec.of))
                && after.as_ref().is_none_or(|after| user.may_give_classes(before.as_ref(), after))
        }
        AccountChange::AssociationUse { of } => user.may_change_limits(of),
        AccountChange::Class { .. } | AccountChange::ClassUse { .. } => false,
    };
    match may {
        true => Ok(()),
        false => access.require_operator("change accounts, associations and classes that they do not coordinate"),
    }
}

struct Coordinator<'a> {
    accounts: &'a Accounts,
    name: &'a str,
}

impl Coordinator<'_> {
    fn is_of(&self, account: &str) -> bool {
        self.accounts.coordinates(self.name, account)
    }

    /// Whether the user coordinates an account above this one.
    fn is_above(&self, account: &str) -> bool {
        let parent = self.accounts.accounts.get(account).and_then(|spec| spec.parent.as_deref());
        parent.is_some_and(|parent| self.is_of(parent))
    }

    fn may_change_account(&self, before: Option<&AccountSpec>, after: Option<&AccountSpec>) -> bool {
        let has_parent = |spec: &AccountSpec| spec.parent.as_deref().is_some_and(|parent| self.is_of(parent));
        match (before, after) {
            (Some(before), Some(after)) if before.parent == after.parent => self.is_of(&before.name),
            (before, after) => before.into_iter().chain(after).all(has_parent),
        }
    }

    fn may_change_user(&self, before: Option<&UserSpec>, after: Option<&UserSpec>) -> bool {
        before.into_iter().chain(after).all(|spec| self.is_of(&spec.default_account))
    }

    fn may_change_limits(&self, of: &AssociationKey) -> bool {
        if of.user.is_some() { self.is_of(&of.account) } else { self.is_above(&of.account) }
    }

    /// Classes that the change adds must be among those that hold above the association.
    fn may_give_classes(&self, before: Option<&AssociationSpec>, after: &AssociationSpec) -> bool {
        let has = |class: &String| {
            before.is_some_and(|before| before.classes.contains(class) || before.default_class.as_ref() == Some(class))
        };
        let mut added = after.classes.iter().chain(&after.default_class).filter(|class| !has(class));
        added.all(|class| self.accounts.is_class_above(&after.of, class))
    }
}
