//! What `sacctmgr add`, `modify` and `delete` come to: which changes are asked of the system, and what is said of them.
//!
//! A QOS is a service class of the core. Accounts that have no parent are below `root`, as Slurm has it; `root` itself and
//! the QOS `normal` are shown also where nobody made them.

mod add;
mod delete;
mod limits;
mod modify;

pub use limits::{tres, wall};

use crate::queries::sacctmgr::{Deed, Kind, Sacctmgr};
use muster_schemas::{
    accounts::{AccountChange, AssociationKey, AssociationSpec},
    views::AccountsPage,
};

/// The account above all others.
pub const ROOT: &str = "root";

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
    fn refused(error: impl Into<String>) -> Self {
        Self { errors: vec![error.into()], ..Self::default() }
    }

    /// Nothing is there to be done, which is an error.
    fn nothing(text: &str) -> Self {
        Self { said: format!(" {text}\n"), ..Self::default() }
    }

    fn say(&mut self, line: impl std::fmt::Display) {
        use std::fmt::Write as _;
        let _ = writeln!(self.said, "{line}");
    }

    fn fail(&mut self, error: impl Into<String>) {
        self.errors.push(error.into());
    }
}

/// What the system is asked to add, change or remove for a command line, as it stands now. `cluster` is its name.
pub fn propose(command: &Sacctmgr, page: &AccountsPage, cluster: &str) -> Proposal {
    let site = Site { page, cluster };
    let proposal = match (command.deed, command.kind) {
        (_, Kind::Cluster) => {
            Proposal::refused(" There is one cluster, which is configured by muster; nothing was changed.")
        }
        (_, Kind::Association) => {
            Proposal::refused(" Associations are added, changed and deleted with their account or user.")
        }
        (Deed::Add, Kind::Account) => add::accounts(&site, command),
        (Deed::Add, Kind::User) => add::users(&site, command),
        (Deed::Add, Kind::Qos) => add::classes(&site, command),
        (Deed::Modify, Kind::Account) => modify::accounts(&site, command),
        (Deed::Modify, Kind::User) => modify::users(&site, command),
        (Deed::Modify, Kind::Qos) => modify::classes(&site, command),
        (Deed::Delete, Kind::Account) => delete::accounts(&site, command),
        (Deed::Delete, Kind::User) => delete::users(&site, command),
        (Deed::Delete, Kind::Qos) => delete::classes(&site, command),
        (Deed::Show, _) => Proposal::default(),
    };
    match proposal.errors.is_empty() {
        true => proposal,
        false => Proposal { changes: Vec::new(), ..proposal },
    }
}

/// What there is.
struct Site<'p> {
    page: &'p AccountsPage,
    cluster: &'p str,
}

impl<'p> Site<'p> {
    fn has_account(&self, name: &str) -> bool {
        name == ROOT || self.page.accounts.iter().any(|spec| spec.name == name)
    }

    fn association(&self, of: &AssociationKey) -> Option<&'p AssociationSpec> {
        self.page.associations.iter().find(|spec| spec.of == *of)
    }

    fn associations_of_user(&self, user: &str) -> impl Iterator<Item = &'p AssociationSpec> {
        self.page.associations.iter().filter(move |spec| spec.of.user.as_deref() == Some(user))
    }

    /// The classes of an association as they are shown: its own, or those that it has of an account.
    fn classes_of(&self, of: &AssociationKey) -> Vec<String> {
        let shown = crate::show::sacctmgr::associations(self.page, self.cluster).into_iter();
        shown.map(|row| row.spec).find(|spec| spec.of == *of).map(|spec| spec.classes).unwrap_or_default()
    }

    fn parent_of(&self, account: &str) -> &'p str {
        let spec = self.page.accounts.iter().find(|spec| spec.name == account);
        spec.and_then(|spec| spec.parent.as_deref()).unwrap_or(ROOT)
    }

    /// An association as lists of what was changed have it.
    fn line(&self, of: &AssociationKey, account_width: usize) -> String {
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

/// The names of a list with commas; accounts, users and classes are written in small letters.
fn names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for name in text.split(',').map(|name| name.trim().trim_matches(['"', '\'']).to_lowercase()) {
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What a key names, by enough of its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Name,
    Account,
    User,
    Cluster,
    Partition,
    Description,
    Organization,
    Parent,
    DefaultAccount,
    AdminLevel,
    Other,
}

/// Keys and the least of their letters that stand for them.
const KEYS: [(&str, usize, Key); 16] = [
    ("accounts", 2, Key::Account),
    ("acct", 4, Key::Account),
    ("adminlevel", 2, Key::AdminLevel),
    ("clusters", 2, Key::Cluster),
    ("defaultaccount", 8, Key::DefaultAccount),
    ("defaultacct", 8, Key::DefaultAccount),
    ("defacct", 7, Key::DefaultAccount),
    ("descriptions", 3, Key::Description),
    ("names", 1, Key::Name),
    ("qos", 3, Key::Other),
    ("organizations", 1, Key::Organization),
    ("parents", 2, Key::Parent),
    ("partitions", 3, Key::Partition),
    ("priority", 3, Key::Other),
    ("users", 1, Key::User),
    ("withassoc", 5, Key::Other),
];

fn key(word: &str) -> Key {
    let is = |known: &str, least: usize| word.len() >= least && known.starts_with(word);
    KEYS.iter().find(|(known, least, _)| is(known, *least)).map_or(Key::Other, |(.., key)| *key)
}
