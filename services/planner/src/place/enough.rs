//! When a search has looked at enough nodes: the first ones that serve a plain request are taken, so the rest need no
//! look.

use super::{Demand, bounds, share::is_floating};
use crate::free::FreeNode;
use muster_schemas::resources::{Alternative, Count, Level, LevelCount, Request};

/// What a plain request still needs. Requests that compare all nodes before they choose have none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enough<'r> {
    demand: Demand<'r>,
    tasks: Option<u32>,
    /// The number of nodes, unless the tasks decide it.
    nodes: Option<u32>,
    /// The least number of nodes.
    least_nodes: u32,
    /// A node with room for fewer tasks is useless.
    least_room: u32,
    able: u32,
    room: u64,
}

impl<'r> Enough<'r> {
    /// The need of an alternative, if it is a plain one: one request whose path is empty or ends at nodes, and which
    /// takes the first nodes that it can get.
    pub fn of(alternative: &'r Alternative, default_memory_per_core_bytes: Option<u64>) -> Option<Self> {
        let [request] = &alternative.requests[..] else { return None };
        let prefers = request.all_gpus().any(is_floating) || alternative.has_layout();
        let is_bound = request.least_nodes.is_some() || request.most_nodes.is_some();
        if prefers || is_bound || !request.nodes.is_empty() {
            return None;
        }
        let (least_nodes, nodes) = match &request.path[..] {
            [] => (1, None),
            [LevelCount { level: Level::Node, count: count @ Count::Range { .. } }] => {
                (bounds(*count, usize::MAX).0, Some(most(request, *count)))
            }
            _ => return None,
        };
        let exclusive = request.sharing != muster_schemas::resources::Sharing::Shared;
        let demand = Demand::new(request, default_memory_per_core_bytes, exclusive);
        let tasks = if nodes.is_none() { Some(request.tasks.unwrap_or(1).max(1)) } else { request.tasks };
        let least_room = least_room(tasks, nodes, request.tasks_per_node);
        Some(Self { demand, tasks, nodes, least_nodes, least_room, able: 0, room: 0 })
    }

    /// Counts a node with this much room; returns whether no more are needed.
    pub fn add_room(&mut self, room: u32) -> bool {
        if room == 0 {
            return false;
        }
        self.able += 1;
        self.room += u64::from(room);
        let has_room = self.tasks.is_none_or(|tasks| self.room >= u64::from(tasks));
        // If there are more nodes than wanted, those with most room may win: the first ones alone must suffice.
        has_room && self.nodes.is_none_or(|nodes| self.able == nodes)
    }

    /// Whether nodes with this room may serve it: how many nodes have room for how many tasks, most room first. If not,
    /// they certainly do not.
    pub fn may_fit(&self, rooms: impl Iterator<Item = (u32, u64)>) -> bool {
        let wanted_tasks = u64::from(self.tasks.unwrap_or(1).max(1));
        let mut places_left = self.nodes.map_or(u64::MAX, u64::from);
        let (mut nodes, mut tasks) = (0_u64, 0_u64);
        for (room, count) in rooms.take_while(|(room, _)| *room >= self.least_room) {
            nodes += count;
            tasks = tasks.saturating_add(u64::from(room) * count.min(places_left));
            places_left = places_left.saturating_sub(count);
            if nodes >= u64::from(self.least_nodes) && tasks >= wanted_tasks {
                return true;
            }
        }
        false
    }

    /// Whether one node is always enough and the maximum.
    pub fn is_for_one_node(&self) -> bool {
        self.nodes.map_or(self.tasks == Some(1), |nodes| nodes == 1)
    }

    /// The cores that a task takes, at least 1.
    pub fn cpus_per_task(&self) -> u32 {
        self.demand.cpus_per_task
    }

    /// A node with fewer cores is useless; at least 1.
    pub fn least_cores(&self) -> u32 {
        self.cpus_per_task().saturating_mul(self.least_room)
    }

    /// The tasks that fit into these cores and this memory, if the request asks for no GPUs.
    pub fn room_of_counts(&self, cores: u64, memory_bytes: u64) -> Option<u32> {
        self.demand.max_tasks_of(cores, memory_bytes).map(|room| self.useful(room))
    }

    /// The tasks that a node has room for.
    pub fn room(&self, node: &FreeNode) -> u32 {
        self.useful(self.demand.max_tasks(node))
    }

    fn useful(&self, room: u32) -> u32 {
        if room < self.least_room { 0 } else { room }
    }
}

/// If there are as many tasks as all nodes together may have, each needs room for its maximum.
fn least_room(tasks: Option<u32>, nodes: Option<u32>, tasks_per_node: Option<u32>) -> u32 {
    let each = tasks_per_node.unwrap_or(0);
    let all = nodes.and_then(|nodes| nodes.checked_mul(each));
    if each > 0 && tasks.is_some() && all == tasks { each } else { 1 }
}

/// The most nodes that a request takes if there are any number of them.
fn most(request: &Request, count: Count) -> u32 {
    let (least, most) = bounds(count, usize::MAX);
    request.tasks.map_or(most, |tasks| most.min(tasks.max(least)))
}
