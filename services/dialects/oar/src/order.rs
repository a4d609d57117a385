//! The order in which resources are tried (OAR-R-12).

use crate::{
    mistake::Mistake,
    resources::{
        property::{self, Fields},
        table::Resource,
    },
    text::{shown, suggestion},
};
use std::cmp::Ordering;

/// A property to sort by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The property; states come in the order Alive, Absent, Suspected, Dead.
    pub property: String,
    /// Whether the greatest value comes first. Unset values come last.
    pub is_descending: bool,
}

/// An order of resources. Equal ones come in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order(pub Vec<Key>);

/// A reservation that starts later than this, in seconds, says nothing about states and priorities at its start.
pub const FAR: i64 = 300;

/// The word that OAR has for the state as a number.
const STATE_NUMBER: &str = "state_num";

impl Default for Order {
    fn default() -> Self {
        let keys = [
            (property::SCHEDULER_PRIORITY, false),
            (property::STATE, false),
            (property::AVAILABLE_UPTO, true),
            (property::SUSPENDED_JOBS, false),
            (property::NODE, false),
        ];
        Self(keys.map(|(property, is_descending)| Key { property: property.to_owned(), is_descending }).to_vec())
    }
}

impl Order {
    /// The order for a reservation that begins so late that states and priorities say nothing about its start.
    pub fn of_far_reservation() -> Self {
        Self(vec![Key { property: property::NODE.to_owned(), is_descending: false }])
    }

    /// The order for a job: the site's, unless it is a reservation whose start is more than [`FAR`] seconds ahead.
    #[must_use]
    pub fn of_job(&self, reservation_start: Option<i64>, now: i64) -> Self {
        match reservation_start {
            Some(start) if start - now > FAR => Self::of_far_reservation(),
            _ => self.clone(),
        }
    }

    /// Reads `SCHEDULER_RESOURCE_ORDER`: `scheduler_priority ASC, available_upto DESC`. Without `fields` every name is one of a
    /// property.
    ///
    /// # Errors
    /// An unknown property, or a word other than `ASC` and `DESC` after it.
    pub fn read(text: &str, fields: Option<&Fields>) -> Result<Self, Mistake> {
        let mut at = 0;
        let mut keys = Vec::new();
        for part in text.split(',') {
            keys.push(key(part, fields).map_err(|why| Mistake::at(text, at, why))?);
            at += part.len() + 1;
        }
        Ok(Self(keys))
    }

    /// The same as an order of nodes in a configuration, up to the first key by which single resources differ, and the keys
    /// that say nothing there.
    pub fn of_nodes(&self) -> (Vec<String>, Vec<&str>) {
        let (mut keys, mut left_out) = (Vec::new(), Vec::new());
        for Key { property, is_descending } in &self.0 {
            let key = match property.as_str() {
                property::ID | "core" | "cpu" | "thread" => break,
                property::STATE => "awake",
                property::NODE | "host" => "name",
                property::SCHEDULER_PRIORITY | property::AVAILABLE_UPTO | property::SUSPENDED_JOBS => {
                    left_out.push(property.as_str());
                    continue;
                }
                other => other,
            };
            let key = format!("{}{key}", if *is_descending { "-" } else { "" });
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        (keys, left_out)
    }

    /// The resources in this order.
    pub fn rank<'t>(&self, resources: impl Iterator<Item = &'t Resource>) -> Vec<&'t Resource> {
        let mut ranked: Vec<&Resource> = resources.collect();
        ranked.sort_by(|one, other| self.compare(one, other));
        ranked
    }

    fn compare(&self, one: &Resource, other: &Resource) -> Ordering {
        let by_keys = self.0.iter().map(|key| key.compare(one, other)).find(|order| order.is_ne());
        by_keys.unwrap_or_else(|| one.id().cmp(&other.id()))
    }
}

impl Key {
    fn compare(&self, one: &Resource, other: &Resource) -> Ordering {
        let order = if self.property == property::STATE {
            one.state().cmp(&other.state())
        } else {
            match (one.value(&self.property), other.value(&self.property)) {
                (Some(one), Some(other)) => one.cmp(other),
                (one, other) => return other.is_some().cmp(&one.is_some()),
            }
        };
        if self.is_descending { order.reverse() } else { order }
    }
}

fn key(part: &str, fields: Option<&Fields>) -> Result<Key, String> {
    let mut words = part.split_whitespace();
    let name = words.next().unwrap_or_default().to_ascii_lowercase();
    let property = if name == STATE_NUMBER { property::STATE.to_owned() } else { name };
    let is_known = fields.map_or(!property.is_empty(), |fields| fields.contains_key(&property));
    if !is_known {
        let near = suggestion(&property, fields.into_iter().flat_map(|fields| fields.keys()).map(String::as_str));
        return Err(format!("no property is called '{}'{near}", shown(&property)));
    }
    let is_descending = match words.next().map(str::to_ascii_uppercase).as_deref() {
        None | Some("ASC") => false,
        Some("DESC") => true,
        Some(word) => return Err(format!("expected ASC or DESC, found '{}'", shown(word))),
    };
    match words.next() {
        None => Ok(Key { property, is_descending }),
        Some(word) => Err(format!("expected a comma, found '{}'", shown(word))),
    }
}
