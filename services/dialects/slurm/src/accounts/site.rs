//! What accounts there are, and what a command would change.

use super::names::ROOT;
use muster_schemas::{
    accounts::{AccountChange, AssociationKey, AssociationSpec},
    views::AccountsPage,
};

/// What a command line comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// What is printed before anybody is asked.
    pub said: String,
    /// What is said of what cannot be done.
    pub errors: Vec<String>,
    /// What is asked of the system if nobody objects; nothing if there are errors.
    pub changes: Vec<AccountChange>,
    /// Nothing narrows down what is changed: it is asked first whether that is meant.
    pub is_of_all: bool,
}

impl Proposal {
    pub(super) fn refused(error: impl Into<String>) -> Self {
        Self { errors: vec![error.into()], ..Self::default() }
    }

    /// Nothing is there to be done, which is an error.
    pub(super) fn nothing(text: &str) -> Self {
        Self { said: format!(" {text}\n"), ..Self::default() }
    }

    pub(super) fn say(&mut self, line: impl std::fmt::Display) {
        use std::fmt::Write as _;
        let _ = writeln!(self.said, "{line}");
    }

    pub(super) fn fail(&mut self, error: impl Into<String>) {
        self.errors.push(error.into());
    }
}

/// What there is.
pub(super) struct Site<'p> {
    pub page: &'p AccountsPage,
    pub cluster: &'p str,
}

impl<'p> Site<'p> {
    pub(super) fn has_account(&self, name: &str) -> bool {
        name == ROOT || self.page.accounts.iter().any(|spec| spec.name == name)
    }

    pub(super) fn association(&self, of: &AssociationKey) -> Option<&'p AssociationSpec> {
        self.page.associations.iter().find(|spec| spec.of == *of)
    }

    pub(super) fn associations_of_user(&self, user: &str) -> impl Iterator<Item = &'p AssociationSpec> {
        self.page.associations.iter().filter(move |spec| spec.of.user.as_deref() == Some(user))
    }

    /// The classes of an association as they are shown: its own, or those that it has of an account.
    pub(super) fn classes_of(&self, of: &AssociationKey) -> Vec<String> {
        let shown = crate::show::sacctmgr::associations(self.page, self.cluster).into_iter();
        shown.map(|row| row.spec).find(|spec| spec.of == *of).map(|spec| spec.classes).unwrap_or_default()
    }

    pub(super) fn parent_of(&self, account: &str) -> &'p str {
        let spec = self.page.accounts.iter().find(|spec| spec.name == account);
        spec.and_then(|spec| spec.parent.as_deref()).unwrap_or(ROOT)
    }

    /// An association as lists of what was changed have it.
    pub(super) fn line(&self, of: &AssociationKey, account_width: usize) -> String {
        let AssociationKey { account, user, queue } = of;
        let cluster = self.cluster;
        match (user, queue) {
            (None, _) => format!("  C = {cluster:<10} A = {account} of {}", self.parent_of(account)),
            (Some(user), None) => format!("  C = {cluster:<10} A = {account:<account_width$} U = {user:<9}"),
            (Some(user), Some(queue)) => {
                format!("  C = {cluster:<10} A = {account:<account_width$} U = {user:<9} P = {queue}")
            }
        }
    }
}
