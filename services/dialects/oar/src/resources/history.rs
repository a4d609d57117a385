//! The values of properties over time.

use super::value::Value;
use std::collections::BTreeMap;

/// A changed value (OAR-R-22).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The number of the resource.
    pub resource: u32,
    /// The property.
    pub property: String,
    /// The value before; `None` if it was unset.
    pub old: Option<Value>,
    /// The value after; `None` if it is unset.
    pub new: Option<Value>,
}

/// A time during which a property had a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The number of the resource.
    pub resource: u32,
    /// The property.
    pub property: String,
    /// The value; `None` if the property was unset.
    pub value: Option<Value>,
    /// When it began, in seconds since the epoch; `None` if it is older than the record.
    pub start: Option<i64>,
    /// When it ended.
    pub end: i64,
}

/// The spans of all values that have ended, and when the current ones began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    ended: Vec<Span>,
    began: BTreeMap<(u32, String), i64>,
}

impl History {
    /// Notes changes that happened at a time.
    pub fn note(&mut self, changes: &[Change], at: i64) {
        for change in changes {
            let Change { resource, property, old, .. } = change.clone();
            let start = self.began.insert((resource, property.clone()), at);
            self.ended.push(Span { resource, property, value: old, start, end: at });
        }
    }

    /// The spans that have ended, in the order of their ends.
    pub fn ended(&self) -> &[Span] {
        &self.ended
    }

    /// When the current value of a property began; `None` if it is older than the record.
    pub fn began(&self, resource: u32, property: &str) -> Option<i64> {
        self.began.get(&(resource, property.to_owned())).copied()
    }
}
