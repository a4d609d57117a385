//! The snapshot of a cycle with the effects of the cycle's own actions (PBS-X-08).

mod amounts;
mod build;
mod effects;
mod look;

pub(crate) use build::world;

use crate::{getters::Named, text::Text, values::Reference};
use amounts::{Resources, Value};
use std::collections::HashMap;

/// Everything that getters see. Objects are places in these lists.
#[derive(Debug, Default)]
pub(crate) struct World {
    servers: Vec<Server>,
    /// Those of the server, then those that `QueFilter` made.
    queues: Vec<Queue>,
    jobs: Vec<Job>,
    nodes: Vec<Node>,
    pub(crate) all_servers: Reference,
    pub(crate) all_nodes: Reference,
    pub(crate) local_node: Option<usize>,
    /// The number of each resource.
    names: HashMap<String, u32>,
}

#[derive(Debug, Default)]
struct Server {
    name: Reference,
    default_queue: Reference,
    limits: [i64; 3],
    available: Resources,
    assigned: Resources,
    queues: Reference,
    jobs: Reference,
    nodes: Reference,
    /// The last answer to `ServerNodesQuery`.
    counts: Option<Counts>,
}

#[derive(Debug, Default)]
struct Queue {
    name: Reference,
    of_type: i64,
    state: i64,
    priority: i64,
    limits: [i64; 3],
    available: Resources,
    assigned: Resources,
    jobs: Reference,
}

#[derive(Debug)]
struct Job {
    id: Reference,
    name: Reference,
    owner: Reference,
    user: Reference,
    group: Reference,
    queue: Option<usize>,
    state: i64,
    priority: i64,
    rerunnable: i64,
    interactive: i64,
    /// The register of a moment.
    created: i64,
    mail: Reference,
    stage_in: Reference,
    stage_out: Reference,
    request: Resources,
    used: Resources,
    is_deleted: bool,
}

#[derive(Debug)]
struct Node {
    name: Reference,
    os: Reference,
    properties: Reference,
    vendor: Reference,
    state: i64,
    is_timeshared: bool,
    cpus: i64,
    idle_seconds: i64,
    /// The register of a float.
    load: i64,
    /// Idle, system, user and guest.
    cpu_percent: [i64; 4],
    /// By function and argument.
    values: Vec<(Named, Text, Value)>,
}

/// Numbers of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    available: i64,
    allocated: i64,
    reserved: i64,
    down: i64,
}

impl World {
    /// The number of a resource that some object has.
    pub(crate) fn resource(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// The number of a resource, which some object may come to have.
    pub(crate) fn resource_number(&mut self, name: &str) -> u32 {
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        match self.names.get(name) {
            Some(number) => *number,
            None => *self.names.entry(name.to_owned()).or_insert(next),
        }
    }
}

/// An element of a list by its register.
fn at<T>(list: &[T], object: i64) -> Option<&T> {
    usize::try_from(object).ok().and_then(|place| list.get(place))
}
