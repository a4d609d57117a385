//! How much room for a plain request all nodes have together, as time passes.

use super::{Search, plain::Plain};
use crate::{
    machine::{MachineNode, Window},
    model::Demand,
};
use muster_schemas::{NodeId, Timestamp};
use std::collections::BTreeMap;

/// How much room for a plain request all nodes have together, as time passes and runs end.
pub(super) struct Rooms<'r> {
    plain: Plain<'r>,
    of_nodes: Vec<u32>,
    counted: RoomCounts,
}

impl<'r> Rooms<'r> {
    /// The rooms at a moment, if the demand is a plain one.
    pub fn of(search: &Search, demand: &'r Demand, choice: Option<u32>, from: Timestamp) -> Option<Self> {
        let plain = Plain::of(search, demand, choice)?;
        let mut rooms = Self { plain, of_nodes: Vec::new(), counted: RoomCounts::default() };
        let known = search.known_cores_at(from);
        let least_cores = plain.enough.least_cores();
        for (at, node) in search.machine.nodes().iter().enumerate() {
            let is_full = known.is_some_and(|cores| cores[at] < least_cores);
            let room = if is_full { 0 } else { rooms.room(search, node, from) };
            rooms.of_nodes.push(room);
            rooms.counted.change(0, room);
        }
        Some(rooms)
    }

    /// If free resources only grow, what is free at a moment stays free for ever.
    fn room(&self, search: &Search, node: &MachineNode, moment: Timestamp) -> u32 {
        if !node.is_available || !self.plain.serves_kind(search, node) {
            return 0;
        }
        self.plain.room_in(search, node, Window { from: moment, until: moment })
    }

    /// Looks again at some nodes, whose room changes at this moment.
    pub fn look_again(&mut self, search: &Search, nodes: impl Iterator<Item = NodeId>, moment: Timestamp) {
        for at in nodes.filter_map(|node| search.machine.index_of(node)) {
            let room = self.room(search, &search.machine.nodes()[at], moment);
            let before = std::mem::replace(&mut self.of_nodes[at], room);
            self.counted.change(before, room);
        }
    }

    /// Whether it may fit at the last moment that was looked at.
    pub fn may_fit(&self) -> bool {
        self.plain.enough.may_fit(self.counted.most_first())
    }
}

/// How many nodes have room for how many tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct RoomCounts(BTreeMap<u32, u64>);

impl RoomCounts {
    /// Changes the room of a node. Nodes without room are not counted.
    pub fn change(&mut self, before: u32, after: u32) {
        if before > 0
            && let Some(count) = self.0.get_mut(&before)
        {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&before);
            }
        }
        if after > 0 {
            *self.0.entry(after).or_default() += 1;
        }
    }

    /// The rooms, most first, and how many nodes have each.
    pub fn most_first(&self) -> impl Iterator<Item = (u32, u64)> {
        self.0.iter().rev().map(|(room, count)| (*room, *count))
    }
}
