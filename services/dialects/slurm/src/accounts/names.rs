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
