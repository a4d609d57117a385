//! Access to a template, and the filters of its jobs (HPC-T-02, HPC-F-02).

use crate::{
    codes::{Code, Refusal},
    description::{attributes::check_text, words::words},
};

/// The users that an entry of an access list applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// Everybody.
    Everyone,
    /// The user of this name.
    User(String),
    /// The members of this group.
    Group(String),
}

/// An entry of an access list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessEntry {
    /// Whether they may submit or must not.
    pub is_allowed: bool,
    /// The users that it applies to.
    pub who: Who,
}

/// The users that may submit with a template. By default everybody; with an empty list nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access(pub Vec<AccessEntry>);

impl Default for Access {
    fn default() -> Self {
        Self(vec![AccessEntry { is_allowed: true, who: Who::Everyone }])
    }
}

impl Access {
    /// Whether a user with these groups may submit: an entry allows it and none denies it.
    pub fn allows(&self, user: &str, groups: &[String]) -> bool {
        let is_about = |entry: &&AccessEntry| match &entry.who {
            Who::Everyone => true,
            Who::User(name) => name == user,
            Who::Group(name) => groups.contains(name),
        };
        let mut entries = self.0.iter().filter(is_about).peekable();
        entries.peek().is_some() && entries.all(|entry| entry.is_allowed)
    }
}

words! {
    /// How a filter's program is run.
    #[derive(Default)]
    Mode {
        /// Started for each call (HPC-F-65).
        #[default]
        Exec,
        /// Kept running (HPC-F-67).
        Persistent,
    }
}

/// A filter of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterDefinition {
    /// Its name in messages and events.
    pub name: String,
    /// Its program.
    pub path: String,
    /// How the program is run.
    pub mode: Mode,
    /// Whether it is also reverted if its last attempt timed out or its runner was lost (HPC-F-58).
    pub reverts_on_unknown: bool,
}

impl FilterDefinition {
    /// A filter whose program is started for each call.
    ///
    /// # Errors
    /// `FilterNotValid`: no name, or a path that is not absolute (HPC-F-72).
    pub fn new(name: impl Into<String>, path: impl Into<String>) -> Result<Self, Refusal> {
        let (name, path) = (name.into(), path.into());
        check_text("a filter's name", &name)?;
        check_path(&path)?;
        if name.trim().is_empty() || name.contains(['\n', '\r', '\'']) {
            let text = format!("filter name `{name}`: expected a name without quotes and newlines");
            return Err(Refusal::new(Code::FilterNotValid, text));
        }
        Ok(Self { name, path, mode: Mode::Exec, reverts_on_unknown: false })
    }
}

/// Whether the path of a filter's program may be set.
///
/// # Errors
/// `FilterNotValid` if it is not absolute (HPC-F-72).
pub(crate) fn check_path(path: &str) -> Result<(), Refusal> {
    check_text("a filter's path", path)?;
    let is_absolute = path.starts_with('/') && !path.ends_with('/') && !path.contains(['\n', '\r']);
    if is_absolute {
        return Ok(());
    }
    Err(Refusal::new(Code::FilterNotValid, format!("`{path}`: expected the absolute path of a program")))
}

/// Checks that filters can be told apart.
///
/// # Errors
/// `FilterNotValid` if two have the same name.
pub fn check_filters(filters: &[FilterDefinition]) -> Result<(), Refusal> {
    let twice = filters
        .iter()
        .enumerate()
        .find(|(index, filter)| filters[..*index].iter().any(|other| other.name == filter.name));
    match twice {
        None => Ok(()),
        Some((_, filter)) => {
            Err(Refusal::new(Code::FilterNotValid, format!("two filters are called '{}'", filter.name)))
        }
    }
}
