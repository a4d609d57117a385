//! Values of attributes.

use super::{
    command::{Change, Operation},
    problem::Problem,
};
use crate::{
    refusal::shown,
    text::decimal,
    value::{Size, parse_seconds},
};
use std::collections::BTreeMap;

/// The longest value of an attribute, in bytes.
const MOST_BYTES: usize = 64 << 10;
/// The longest name of a user, in bytes.
const MOST_USER_BYTES: usize = 255;

/// The words for yes and no, in small letters.
const YES: [&str; 5] = ["true", "t", "yes", "y", "1"];
const NO: [&str; 5] = ["false", "f", "no", "n", "0"];

/// The name of an attribute with its resource, in small letters.
pub(super) fn key(change: &Change) -> String {
    let attribute = change.attribute.to_ascii_lowercase();
    match &change.resource {
        Some(resource) => format!("{attribute}.{}", resource.to_ascii_lowercase()),
        None => attribute,
    }
}

/// The operation and the value of a change.
pub(super) fn given(change: &Change) -> Result<(Operation, &str), Problem> {
    match &change.value {
        Some((_, value)) if value.len() > MOST_BYTES => Err(Problem(format!("a value has at most {MOST_BYTES} bytes"))),
        Some((operation, value)) => Ok((*operation, value)),
        None => Err(Problem("a value is missing".to_owned())),
    }
}

/// The value of an attribute that can only be replaced.
pub(super) fn assigned(change: &Change) -> Result<&str, Problem> {
    match given(change)? {
        (Operation::Assign, value) => Ok(value.trim()),
        (operation, _) => Err(Problem(format!("{operation} is for lists and numbers; expected ="))),
    }
}

fn wrong(value: &str, expected: &str) -> Problem {
    Problem(format!("illegal value `{}`: expected {expected}", shown(value)))
}

/// A boolean.
pub(super) fn boolean(change: &Change) -> Result<bool, Problem> {
    let value = assigned(change)?;
    let lower = value.to_ascii_lowercase();
    match (YES.contains(&lower.as_str()), NO.contains(&lower.as_str())) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(wrong(value, "True or False")),
    }
}

/// As the family prints a boolean.
pub(super) const fn show_boolean(is_so: bool) -> &'static str {
    if is_so { "True" } else { "False" }
}

/// A whole number that may be negative; `+=` and `-=` count from the present one.
pub(super) fn integer(change: &Change, present: i64) -> Result<i64, Problem> {
    let (operation, value) = given(change)?;
    let value = value.trim();
    let number: i64 = value.parse().map_err(|_| wrong(value, "a whole number"))?;
    let result = match operation {
        Operation::Assign => Some(number),
        Operation::Add => present.checked_add(number),
        Operation::Remove => present.checked_sub(number),
    };
    result.ok_or_else(|| wrong(value, "a number that leaves one of 64 bits"))
}

/// A count; `+=` and `-=` count from the present one.
pub(super) fn count(change: &Change, present: Option<u32>) -> Result<u32, Problem> {
    let number = integer(change, present.map_or(0, i64::from))?;
    let value = change.value.as_ref().map_or("", |(_, value)| value);
    u32::try_from(number).map_err(|_| wrong(value, "a number from 0 to 4294967295"))
}

/// A length of time.
pub(super) fn seconds(change: &Change) -> Result<u64, Problem> {
    let value = assigned(change)?;
    parse_seconds(value).ok_or_else(|| wrong(value, "seconds or HH:MM:SS"))
}

/// A length of time of at most 136 years.
pub(super) fn short_seconds(change: &Change) -> Result<u32, Problem> {
    u32::try_from(seconds(change)?).map_err(|_| wrong(assigned(change).unwrap_or_default(), "less than 136 years"))
}

/// An amount of memory, in bytes.
pub(super) fn bytes(change: &Change) -> Result<u64, Problem> {
    let value = assigned(change)?;
    Size::parse(value).map(Size::bytes).ok_or_else(|| wrong(value, "a size such as 8gb"))
}

/// The entries of a value between commas, without blanks around them. An empty value has none.
pub(super) fn entries(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

/// Applies a change to a list. Each entry is in it at most once.
pub(super) fn change_list(list: &mut Vec<String>, operation: Operation, entries: Vec<String>) {
    match operation {
        Operation::Assign => {
            list.clear();
            add(list, entries);
        }
        Operation::Add => add(list, entries),
        Operation::Remove => list.retain(|known| !entries.contains(known)),
    }
}

fn add(list: &mut Vec<String>, entries: Vec<String>) {
    for entry in entries {
        if !list.contains(&entry) {
            list.push(entry);
        }
    }
}

/// Changes a list of users. A user is the same on every host.
pub(super) fn change_users(list: &mut Vec<String>, change: &Change) -> Result<(), Problem> {
    let (operation, value) = given(change)?;
    let users = entries(value).map(user).collect::<Result<Vec<_>, _>>()?;
    change_list(list, operation, users);
    Ok(())
}

fn user(entry: &str) -> Result<String, Problem> {
    if entry.starts_with('-') {
        return Err(Problem(format!("`{}`: users can be named but not excluded", shown(entry))));
    }
    let entry = entry.strip_prefix('+').unwrap_or(entry);
    let (name, host) = entry.split_once('@').map_or((entry, None), |(name, host)| (name, Some(host)));
    if host.is_some_and(|host| host != "*") {
        let why = format!("`{}`: users are not told apart by host; write {}@*", shown(entry), shown(name));
        return Err(Problem(why));
    }
    match is_user(name) {
        true => Ok(name.to_owned()),
        false => Err(wrong(entry, "users such as ann or ann@*")),
    }
}

/// Whether this can be the name of a user.
fn is_user(name: &str) -> bool {
    let fits = |c: char| !c.is_whitespace() && !c.is_control();
    !name.is_empty() && name != "*" && name.len() <= MOST_USER_BYTES && name.chars().all(fits)
}

/// The name in limits for each user, group or project.
pub const EACH_ONE: &str = "PBS_GENERIC";

/// A limit of PBS Pro, such as `[o:PBS_ALL=10]` for all, `[u:PBS_GENERIC=2]` for each user, `[g:PBS_GENERIC=5]` for each group,
/// `[p:PBS_GENERIC=6]` for each project, and `[u:ann=3]`, `[g:phys=4]` and `[p:climate=5]` for a single one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// The number for all.
    pub all: Option<u32>,
    /// The number for each user.
    pub each_user: Option<u32>,
    /// The number for each group.
    pub each_group: Option<u32>,
    /// The numbers for single users.
    pub users: BTreeMap<String, u32>,
    /// The numbers for single groups.
    pub groups: BTreeMap<String, u32>,
    /// The numbers for single projects, and for each one under the name [`EACH_ONE`].
    pub projects: BTreeMap<String, u32>,
}

impl Limits {
    /// Whether nothing but the jobs of all users together is limited.
    pub fn is_of_all(&self) -> bool {
        let is_empty = BTreeMap::is_empty;
        self.each_user.is_none()
            && self.each_group.is_none()
            && is_empty(&self.users)
            && is_empty(&self.groups)
            && is_empty(&self.projects)
    }
}

/// Reads limits.
pub(super) fn limits(value: &str) -> Result<Limits, Problem> {
    let mut limits = Limits::default();
    for entry in entries(value) {
        let read = entry.strip_prefix('[').and_then(|entry| entry.strip_suffix(']'));
        let (who, number) = read
            .and_then(|entry| entry.split_once('='))
            .ok_or_else(|| wrong(entry, "limits such as [o:PBS_ALL=10] and [u:PBS_GENERIC=2]"))?;
        let number: u32 = decimal(number.trim()).ok_or_else(|| wrong(entry, "a number from 0 to 4294967295"))?;
        match who.trim() {
            "o:PBS_ALL" => limits.all = Some(number),
            "u:PBS_GENERIC" => limits.each_user = Some(number),
            "g:PBS_GENERIC" => limits.each_group = Some(number),
            "p:PBS_GENERIC" => drop(limits.projects.insert(EACH_ONE.to_owned(), number)),
            who => match who.split_once(':').filter(|(_, name)| is_user(name) && !name.starts_with("PBS_")) {
                Some(("u", name)) => drop(limits.users.insert(name.to_owned(), number)),
                Some(("g", name)) => drop(limits.groups.insert(name.to_owned(), number)),
                Some(("p", name)) => drop(limits.projects.insert(name.to_owned(), number)),
                _ => return Err(wrong(entry, "o:PBS_ALL, or u:, g: or p: with a name or PBS_GENERIC")),
            },
        }
    }
    Ok(limits)
}

/// Applies a change of limits to the present ones.
pub(super) fn change_limits(present: Limits, change: &Change) -> Result<Limits, Problem> {
    let (operation, value) = given(change)?;
    let named = limits(value)?;
    let one = |present: Option<u32>, named: Option<u32>| match operation {
        Operation::Assign => named,
        Operation::Add => named.or(present),
        Operation::Remove => present.filter(|_| named.is_none()),
    };
    let several = |mut present: BTreeMap<String, u32>, named: BTreeMap<String, u32>| {
        match operation {
            Operation::Assign => return named,
            Operation::Add => present.extend(named),
            Operation::Remove => present.retain(|name, _| !named.contains_key(name)),
        }
        present
    };
    Ok(Limits {
        all: one(present.all, named.all),
        each_user: one(present.each_user, named.each_user),
        each_group: one(present.each_group, named.each_group),
        users: several(present.users, named.users),
        groups: several(present.groups, named.groups),
        projects: several(present.projects, named.projects),
    })
}
