//! Planning domains: the root has all resources at all times, others have what containers opened.

use std::collections::{BTreeMap, BTreeSet};

/// A planning domain. Placements of different domains do not hinder each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Domain {
    /// The domain of all resources.
    #[default]
    Root,
    /// The domain that the containers with this id or name opened.
    Inside(String),
}

/// The time and the resources that a container gives to its domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// From when on.
    pub start: i64,
    /// Until when: placements inside end by then.
    pub end: i64,
    /// Its resources.
    pub resources: BTreeSet<u32>,
}

/// The windows of all domains but the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domains {
    windows: BTreeMap<String, Vec<Window>>,
}

impl Domains {
    /// Adds the window of a container. Containers of the same name open one domain (OAR-T-17). One that runs gives only the
    /// time that is left (OAR-T-18).
    pub fn open(&mut self, key: &str, window: Window, now: i64) {
        let window = Window { start: window.start.max(now), ..window };
        if window.start < window.end {
            self.windows.entry(key.to_owned()).or_default().push(window);
        }
    }

    /// The windows of a domain; `None` for the root, which has no bounds.
    pub fn windows(&self, domain: &Domain) -> Option<&[Window]> {
        match domain {
            Domain::Root => None,
            Domain::Inside(key) => Some(self.windows.get(key).map_or(&[], Vec::as_slice)),
        }
    }
}

/// Whether a resource is given from start to end by one of the windows; without windows it is.
pub fn is_given(windows: Option<&[Window]>, resource: u32, start: i64, end: i64) -> bool {
    let Some(windows) = windows else { return true };
    let gives = |window: &Window| window.start <= start && end <= window.end && window.resources.contains(&resource);
    windows.iter().any(gives)
}
