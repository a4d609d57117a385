//! `oarprint`: the properties of the resources of a job, sorted and grouped.

use crate::text::shown;
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

/// The properties of a resource.
pub type Resource = BTreeMap<String, String>;

/// The longest file of properties, in bytes.
pub const LONGEST_FILE: usize = 64 << 20;

/// Reads a file of properties: `name = 'value', ...`, one resource in a line. A quote inside a value is doubled.
///
/// # Errors
/// The first line that has another form, as a sentence.
pub fn read(text: &str) -> Result<Vec<Resource>, String> {
    let mut resources = Vec::new();
    for (at, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = || format!("line {at}: expected name = 'value', ..., found '{}'", shown(line));
        resources.push(one(line).ok_or_else(wrong)?);
    }
    Ok(resources)
}

fn one(line: &str) -> Option<Resource> {
    let (mut resource, mut rest) = (Resource::new(), line.trim());
    while !rest.is_empty() {
        let (name, behind) = rest.split_once('=')?;
        let (value, behind) = quoted(behind.trim_start())?;
        resource.insert(name.trim().to_owned(), value);
        rest = behind.trim_start();
        if !rest.is_empty() {
            rest = rest.strip_prefix(',')?.trim_start();
        }
    }
    Some(resource)
}

/// A text in single quotes, and what is behind it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut value = String::new();
    loop {
        let (part, behind) = rest.split_once('\'')?;
        value.push_str(part);
        match behind.strip_prefix('\'') {
            Some(behind) => {
                value.push('\'');
                rest = behind;
            }
            None => return Some((value, behind)),
        }
    }
}

/// The printed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// One line for each value of this property.
    pub key: String,
    /// The properties in a line; empty means the key alone.
    pub properties: Vec<String>,
    /// A line, in which [`token`](Self::token) stands for the next property; without one they are separated by spaces.
    pub format: Option<String>,
    /// See [`format`](Self::format).
    pub token: String,
    /// The text between several values of a property.
    pub separator: String,
}

impl Default for Form {
    fn default() -> Self {
        let (properties, separator) = (Vec::new(), ",".to_owned());
        Self { key: String::new(), properties, format: None, token: "%".to_owned(), separator }
    }
}

/// The lines, by the values of the key: numbers by size, before texts.
///
/// # Errors
/// A property that a resource does not have, as a sentence.
pub fn lines(resources: &[Resource], form: &Form) -> Result<Vec<String>, String> {
    let names = if form.properties.is_empty() { std::slice::from_ref(&form.key) } else { &form.properties };
    let mut groups: BTreeMap<Sorted<'_>, Vec<BTreeSet<Sorted<'_>>>> = BTreeMap::new();
    for resource in resources {
        let value = |name: &String| {
            let unknown = || format!("a resource has no property '{}'", shown(name));
            resource.get(name).map(|value| Sorted(value)).ok_or_else(unknown)
        };
        let group = groups.entry(value(&form.key)?).or_insert_with(|| vec![BTreeSet::new(); names.len()]);
        for (values, name) in group.iter_mut().zip(names) {
            values.insert(value(name)?);
        }
    }
    let joined =
        |values: &BTreeSet<Sorted<'_>>| values.iter().map(|value| value.0).collect::<Vec<_>>().join(&form.separator);
    Ok(groups.values().map(|group| line(group.iter().map(joined).collect(), form)).collect())
}

fn line(values: Vec<String>, form: &Form) -> String {
    let Some(format) = form.format.as_ref().filter(|_| !form.token.is_empty()) else { return values.join(" ") };
    let mut parts = format.split(form.token.as_str());
    let mut line = parts.next().unwrap_or_default().to_owned();
    let mut values = values.into_iter();
    for part in parts {
        line += &values.next().unwrap_or_default();
        line += part;
    }
    values.fold(line, |line, value| line + " " + &value)
}

/// A value in its place: numbers by size, before texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sorted<'v>(&'v str);

impl Ord for Sorted<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.0.parse::<i64>(), other.0.parse::<i64>()) {
            (Ok(one), Ok(two)) => one.cmp(&two).then_with(|| self.0.cmp(other.0)),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => self.0.cmp(other.0),
        }
    }
}

impl PartialOrd for Sorted<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
