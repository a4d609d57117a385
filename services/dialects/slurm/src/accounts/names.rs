//! The names of accounts, users, classes and keys.

/// The account above all others.
pub const ROOT: &str = "root";

/// The names in a comma-separated list; accounts, users and classes are in lower case.
pub(super) fn names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for name in text.split(',').map(|name| name.trim().trim_matches(['"', '\'']).to_lowercase()) {
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What a user may do to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminLevel {
    /// What every user may.
    None,
    /// Manage jobs and nodes.
    Operator,
    /// Everything.
    Administrator,
}

impl AdminLevel {
    const ALL: [(&'static str, Self); 3] =
        [("none", Self::None), ("operator", Self::Operator), ("administrator", Self::Administrator)];

    /// Reads a level, which may be abbreviated.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let word = text.trim_matches(['"', '\'']).to_lowercase();
        let is = |known: &str| !word.is_empty() && known.starts_with(&word);
        // `NotSet` is what users have that nobody has given a level.
        let known = Self::ALL.iter().find(|(known, _)| is(known)).map(|(_, level)| *level);
        known.or_else(|| (word == "notset").then_some(Self::None))
    }

    /// As tables show it.
    pub const fn shown(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Operator => "Operator",
            Self::Administrator => "Administrator",
        }
    }
}

/// The meaning of a key, which may be abbreviated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
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

/// Keys with the fewest letters that abbreviate them.
pub(super) const KEYS: [(&str, usize, Key); 16] = [
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

pub(super) fn key(word: &str) -> Key {
    let is = |known: &str, least: usize| word.len() >= least && known.starts_with(word);
    KEYS.iter().find(|(known, least, _)| is(known, *least)).map_or(Key::Other, |(.., key)| *key)
}
