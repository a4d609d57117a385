//! How much room for a plain request there is on all nodes together, while time goes on.

use super::{Search, fits_any_sharing, serves_kind};
use crate::{
    machine::{MachineNode, Window},
    model::{ComponentDemand, Demand},
    place::Enough,
};
use muster_schemas::{NodeId, Timestamp, resources::Alternative};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

/// How much room for a plain request all nodes have together, while time goes on and runs end.
pub(super) struct Rooms<'r> {
    component: &'r ComponentDemand,
    alternative: &'r Alternative,
    enough: Enough<'r>,
    of_nodes: Vec<u32>,
    counted: RoomCounts,
}

impl<'r> Rooms<'r> {
    /// The rooms at a moment, if the demand is a plain one.
    pub fn of(search: &Search, demand: &'r Demand, choice: Option<u32>, from: Timestamp) -> Option<Self> {
        let Plain { component, alternative, enough } = Plain::of(search, demand, choice)?;
        let (of_nodes, counted) = (Vec::new(), RoomCounts::default());
        let mut rooms = Self { component, alternative, enough, of_nodes, counted };
        let known = search.known_at(from);
        let least_cores = rooms.enough.cpus_per_task();
        for (at, node) in search.machine.nodes().iter().enumerate() {
            let is_full = known.is_some_and(|cores| cores[at] < least_cores);
            let room = if is_full { 0 } else { rooms.room(search, node, from) };
            rooms.of_nodes.push(room);
            rooms.counted.change(0, room);
        }
        Some(rooms)
    }

    /// What is free at a moment is free for ever if it only grows.
    fn room(&self, search: &Search, node: &MachineNode, moment: Timestamp) -> u32 {
        let queue_nodes = search.queue_nodes(self.component);
        if !node.is_available || !serves_kind(node, queue_nodes, self.alternative) {
            return 0;
        }
        room_in(node, search, Window { from: moment, until: moment }, self.alternative, &self.enough)
    }

    /// Some nodes have other room from this moment on.
    pub fn look_again(&mut self, search: &Search, nodes: impl Iterator<Item = NodeId>, moment: Timestamp) {
        for at in nodes.filter_map(|node| search.machine.index_of(node)) {
            let room = self.room(search, &search.machine.nodes()[at], moment);
            let before = std::mem::replace(&mut self.of_nodes[at], room);
            self.counted.change(before, room);
        }
    }

    /// Whether it may fit at the moment that was last looked at.
    pub fn may_fit(&self) -> bool {
        self.enough.may_fit(self.counted.most_first())
    }
}

/// How many nodes have room for how many tasks.
#[derive(Default)]
struct RoomCounts(BTreeMap<u32, u64>);

impl RoomCounts {
    /// A node's room changes. None is not counted.
    fn change(&mut self, before: u32, after: u32) {
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

    fn most_first(&self) -> impl Iterator<Item = (u32, u64)> {
        self.0.iter().rev().map(|(room, count)| (*room, *count))
    }
}

/// Goes from moment to moment to those at which a plain request may fit, without a look at all nodes at each of them.
///
/// A window that begins between two steps of a node holds the first of them whole or in part, so the node's room at the
/// first moment of that time is the most that it can have until the next step.
pub(super) struct Sweep<'r, 's> {
    search: &'r Search<'s>,
    plain: Plain<'r>,
    bound: Timestamp,
    /// For each node the cores that its room stands for.
    cores: Vec<u32>,
    counted: RoomCounts,
    /// The next moment at which something changes on each node, or licences (the number behind the last node).
    next: BinaryHeap<Reverse<(Timestamp, u32)>>,
    licence_changes: Vec<Timestamp>,
    is_at: Option<Timestamp>,
}

impl<'r, 's> Sweep<'r, 's> {
    /// From a moment on, before another; if the demand is a plain one.
    pub fn of(
        search: &'r Search<'s>,
        demand: &'r Demand,
        choice: Option<u32>,
        from: Timestamp,
        bound: Timestamp,
    ) -> Option<Self> {
        let plain = Plain::of(search, demand, choice)?;
        let queue_nodes = search.queue_nodes(plain.component);
        let mut licence_changes: Vec<Timestamp> =
            plain.alternative.licences.keys().flat_map(|name| search.machine.licence_openings(name, from)).collect();
        licence_changes.sort_unstable_by_key(|at| Reverse(*at));
        let mut sweep = Self {
            search,
            plain,
            bound,
            cores: vec![0; search.machine.nodes().len()],
            counted: RoomCounts::default(),
            next: BinaryHeap::new(),
            licence_changes,
            is_at: None,
        };
        let mut next = Vec::with_capacity(search.machine.nodes().len());
        for (at, node) in (0..).zip(search.machine.nodes()) {
            if node.is_available && serves_kind(node, queue_nodes, sweep.plain.alternative) {
                let change = sweep.look(at, from);
                next.extend(change.map(|change| Reverse((change, at))));
            }
        }
        sweep.next = next.into();
        Some(sweep)
    }

    /// The next moment, the first of them included, at which it may fit; with the cores of each node that may serve then.
    pub fn next(&mut self, from: Timestamp) -> Option<(Timestamp, &[u32])> {
        let mut moment = match self.is_at {
            None => Some(from),
            Some(_) => self.advance(),
        };
        while let Some(at) = moment.filter(|at| *at < self.bound) {
            self.is_at = Some(at);
            if self.plain.enough.may_fit(self.counted.most_first()) {
                return Some((at, &self.cores));
            }
            moment = self.advance();
        }
        None
    }

    /// Goes on to the next change.
    fn advance(&mut self) -> Option<Timestamp> {
        let of_nodes = self.next.peek().map(|Reverse((at, _))| *at);
        let of_licences = self.licence_changes.last().copied();
        let moment = of_nodes.into_iter().chain(of_licences).min()?;
        while self.licence_changes.last() == Some(&moment) {
            self.licence_changes.pop();
        }
        while let Some(Reverse((_, number))) = self.next.peek().copied().filter(|Reverse((at, _))| *at == moment) {
            self.next.pop();
            let change = self.look(number, moment);
            self.next.extend(change.map(|change| Reverse((change, number))));
        }
        Some(moment)
    }

    /// Counts the room of a node at a moment. When it is worth another look, if ever.
    fn look(&mut self, number: u32, moment: Timestamp) -> Option<Timestamp> {
        let node = &self.search.machine.nodes()[number as usize];
        let Plain { component, alternative, enough } = &self.plain;
        let window = Window::of(moment, alternative.walltime_seconds);
        let serves = node.serves(window, component.reservation.as_deref());
        let room = if serves { room_in(node, self.search, window, alternative, enough) } else { 0 };
        let per_task = enough.cpus_per_task();
        let cores = room.saturating_mul(per_task);
        let before = std::mem::replace(&mut self.cores[number as usize], cores);
        self.counted.change(before / per_task, room);
        if room > 0 || !node.is_always_open() {
            return node.next_opening(moment);
        }
        // Gaps that are too short or too small are passed over.
        let micros = window.until.micros_since(window.from);
        let cores = i32::try_from(per_task).unwrap_or(i32::MAX);
        let next = node.line.earliest_cores(cores, micros, moment, self.bound, Timestamp::MAX)?;
        if next > moment { Some(next) } else { node.next_opening(moment) }
    }
}

/// A plain request of a job with one component.
#[derive(Clone, Copy)]
struct Plain<'r> {
    component: &'r ComponentDemand,
    alternative: &'r Alternative,
    enough: Enough<'r>,
}

impl<'r> Plain<'r> {
    fn of(search: &Search, demand: &'r Demand, choice: Option<u32>) -> Option<Self> {
        let [component] = &demand.components[..] else { return None };
        let number = choice.or((component.alternatives.len() == 1).then_some(0))?;
        let alternative = component.alternatives.get(number as usize)?;
        let enough = Enough::of(alternative, search.default_memory_per_core_bytes)?;
        Some(Self { component, alternative, enough })
    }
}

/// The tasks of a plain request that a node of its kind has room for all through a window.
fn room_in(node: &MachineNode, search: &Search, window: Window, alternative: &Alternative, enough: &Enough) -> u32 {
    let per_task = i32::try_from(enough.cpus_per_task()).unwrap_or(i32::MAX);
    let Some(least) = node.least_with_cores(per_task, window) else { return 0 };
    let is_shared = fits_any_sharing(alternative);
    if least.exclusive < 0 || least.holders < 0 && !is_shared {
        return 0;
    }
    let of_counts = || enough.room_of_counts(u64::try_from(least.cores).ok()?, u64::try_from(least.memory_bytes).ok()?);
    of_counts().unwrap_or_else(|| {
        let free = node.free_in(window, search.now, false);
        free.map_or(0, |free| enough.room(&free))
    })
}
