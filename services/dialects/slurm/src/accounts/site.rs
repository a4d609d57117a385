//! The existing accounts, and the changes that a command would make.

use super::names::{AdminLevel, ROOT};
use muster_schemas::{
    accounts::{AccountChange, AssociationKey, AssociationSpec},
    views::AccountsPage,
};

/// The result of a command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// The output before the user is asked.
    pub said: String,
    /// The errors.
    pub errors: Vec<String>,
    /// The changes to request unless the user objects; none if there are errors.
    pub changes: Vec<AccountChange>,
    /// Users who get a level of administrators, which is in the settings of the cluster; none if there are errors.
    pub levels: Vec<(String, AdminLevel)>,
    /// Whether no condition restricts the changes: then the user must confirm that this is meant.
    pub is_of_all: bool,
}

impl Proposal {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.levels.is_empty()
    }

    pub(super) fn refused(error: impl Into<String>) -> Self {
        Self { errors: vec![error.into()], ..Self::default() }
    }

    /// Nothing to do, which is an error.
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

/// The existing accounts.
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

    /// The classes of an association as shown: its own, or those of its account.
    pub(super) fn classes_of(&self, of: &AssociationKey) -> Vec<String> {
        let shown = crate::show::sacctmgr::associations(self.page, self.cluster).into_iter();
        shown.map(|row| row.spec).find(|spec| spec.of == *of).map(|spec| spec.classes).unwrap_or_default()
    }

    pub(super) fn parent_of(&self, account: &str) -> &'p str {
        let spec = self.page.accounts.iter().find(|spec| spec.name == account);
        spec.and_then(|spec| spec.parent.as_deref()).unwrap_or(ROOT)
    }

    /// The line of an association in a list of changes.
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
