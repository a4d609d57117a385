//! Monitors of nodes as Tcl programs ask them (PBS-X-17).

use std::collections::{BTreeMap, VecDeque};

/// Open monitors of a cycle.
const MOST_OPEN: usize = 10_000;
/// Queries of a monitor that were not fetched.
const MOST_QUERIES: usize = 10_000;

/// What a monitor says to a query that it does not know.
pub const UNKNOWN: &str = "? 15201";

/// The handles of a cycle.
#[derive(Debug, Default)]
pub struct Monitors {
    open: BTreeMap<u32, Monitor>,
    next: u32,
    /// Whether answers are `query=answer`.
    pub is_full: bool,
}

#[derive(Debug)]
struct Monitor {
    node: String,
    queries: VecDeque<String>,
}

impl Monitors {
    /// A handle for a node; `None` if there are too many.
    pub fn open(&mut self, node: &str) -> Option<u32> {
        if self.open.len() >= MOST_OPEN {
            return None;
        }
        let handle = self.next;
        self.next += 1;
        self.open.insert(handle, Monitor { node: node.to_owned(), queries: VecDeque::new() });
        Some(handle)
    }

    /// Gives up a handle. Whether there was one.
    pub fn close(&mut self, handle: u32) -> bool {
        self.open.remove(&handle).is_some()
    }

    /// Notes a query. Whether there is such a handle, with room for it.
    pub fn add(&mut self, handle: u32, query: &str) -> bool {
        let monitor = self.open.get_mut(&handle).filter(|monitor| monitor.queries.len() < MOST_QUERIES);
        monitor.map(|monitor| monitor.queries.push_back(query.to_owned())).is_some()
    }

    /// Notes a query to all. How many there are.
    pub fn add_to_all(&mut self, query: &str) -> usize {
        let handles: Vec<u32> = self.open.keys().copied().collect();
        handles.into_iter().filter(|handle| self.add(*handle, query)).count()
    }

    /// The next query of a handle that was not answered, and its node.
    pub fn next(&mut self, handle: u32) -> Option<(String, String)> {
        let monitor = self.open.get_mut(&handle)?;
        let query = monitor.queries.pop_front()?;
        Some((monitor.node.clone(), query))
    }

    /// A handle whose queries were not all answered.
    pub fn active(&self) -> Option<u32> {
        self.open.iter().find(|(_, monitor)| !monitor.queries.is_empty()).map(|(handle, _)| *handle)
    }

    /// The nodes of handles that nobody closed.
    pub fn left_open(&self) -> impl Iterator<Item = &str> {
        self.open.values().map(|monitor| monitor.node.as_str())
    }
}
