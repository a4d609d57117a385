//! Advances between the moments at which a plain request may fit, without looking at all nodes.

use super::{Search, plain::Plain, rooms::RoomCounts, view::Look};
use crate::machine::{Gap, Gaps, Key, MachineNode, Wanted, Window};
use muster_schemas::Timestamp;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

/// The position in time of the search for a plain request, and the nodes that it may have there. It can be continued
/// for the next equal request as long as nothing is freed: that one fits no earlier.
///
/// The room of a node is looked at where one of its gaps begins, and then at each change on it until the gap is over. A
/// window that begins between two changes holds all or part of the time after the first of them, so the room at the
/// first moment of that time is the most that the node can have until the next one.
#[derive(Clone, Debug)]
pub(crate) struct Sweep {
    wanted: Wanted,
    moment: Timestamp,
    /// The last gap that was looked at.
    reached: Key,
    looks: BTreeMap<u32, Look>,
    /// When to look at each node again. An entry whose time differs from the look's own is obsolete.
    again: BinaryHeap<Reverse<(Timestamp, u32)>>,
    counted: RoomCounts,
}

impl Sweep {
    /// A search from a moment on, if the gaps are known.
    pub fn start(search: &Search, plain: &Plain, from: Timestamp) -> Option<Self> {
        let gaps = search.machine.gaps(plain.component.reservation.as_ref())?;
        let mut sweep = Self {
            wanted: plain.wanted(),
            moment: from,
            reached: (from, u32::MAX, u32::MAX),
            looks: BTreeMap::new(),
            again: BinaryHeap::new(),
            counted: RoomCounts::default(),
        };
        let wanted = sweep.wanted;
        gaps.covering(from, &wanted).for_each(|node| {
            if !sweep.looks.contains_key(&node) {
                sweep.look(search, plain, node);
            }
        });
        Some(sweep)
    }

    /// The moment that it has reached.
    pub fn moment(&self) -> Timestamp {
        self.moment
    }

    /// The nodes that may serve at this moment, by their index.
    pub fn looks(&self) -> &BTreeMap<u32, Look> {
        &self.looks
    }

    /// Advances to the first moment, this one included and before `bound`, at which it may fit. Returns whether there
    /// is one.
    pub fn find(&mut self, search: &Search, plain: &Plain, bound: Timestamp) -> bool {
        let Some(gaps) = search.machine.gaps(plain.component.reservation.as_ref()) else { return false };
        loop {
            if self.moment >= bound {
                return false;
            }
            if plain.enough.may_fit(self.counted.most_first()) && self.is_still_enough(search, plain) {
                return true;
            }
            if !self.advance(search, plain, gaps) {
                return false;
            }
        }
    }

    /// Advances to the next change. Returns whether there is one.
    pub fn pass_on(&mut self, search: &Search, plain: &Plain) -> bool {
        let gaps = search.machine.gaps(plain.component.reservation.as_ref());
        gaps.is_some_and(|gaps| self.advance(search, plain, gaps))
    }

    /// The next change.
    pub fn next_change(&self, search: &Search, plain: &Plain) -> Option<Timestamp> {
        let gaps = search.machine.gaps(plain.component.reservation.as_ref())?;
        self.next_with(search, plain, gaps.next(self.reached, &self.wanted))
    }

    fn next_with(&self, search: &Search, plain: &Plain, gap: Option<Gap>) -> Option<Timestamp> {
        let of_nodes = self.again.peek().map(|Reverse((at, _))| *at);
        let names = plain.alternative.licences.keys();
        let of_licences = names.filter_map(|name| search.machine.licence_openings(name, self.moment).next());
        let next = of_licences.chain(gap.map(|gap| gap.from)).chain(of_nodes).min();
        next.filter(|next| *next < Timestamp::MAX)
    }

    /// Advances to a moment that is not before this one.
    pub fn go_to(&mut self, search: &Search, plain: &Plain, moment: Timestamp) {
        let Some(gaps) = search.machine.gaps(plain.component.reservation.as_ref()) else { return };
        while self.next_change(search, plain).is_some_and(|next| next <= moment) {
            self.advance(search, plain, gaps);
        }
        self.moment = moment;
    }

    fn advance(&mut self, search: &Search, plain: &Plain, gaps: &Gaps) -> bool {
        let gap = gaps.next(self.reached, &self.wanted);
        let Some(next) = self.next_with(search, plain, gap) else { return false };
        self.moment = next;
        while let Some(Reverse((_, node))) = self.again.peek().copied().filter(|Reverse((at, _))| *at <= next) {
            let Some(Reverse((at, _))) = self.again.pop() else { break };
            if self.looks.get(&node).is_some_and(|look| look.again == Some(at)) {
                self.look(search, plain, node);
            }
        }
        self.look_at_gaps(search, plain, gaps, gap);
        true
    }

    /// Looks at the nodes of all gaps that have begun, from a given one on.
    fn look_at_gaps(&mut self, search: &Search, plain: &Plain, gaps: &Gaps, first: Option<Gap>) {
        let mut next = first;
        while let Some(gap) = next.filter(|gap| gap.from <= self.moment) {
            self.reached = gap.key();
            self.look(search, plain, gap.node);
            next = gaps.next(self.reached, &self.wanted);
        }
    }

    /// Looks again at nodes that changed or whose look is outdated, from the first on until those looked at are enough.
    /// Returns whether they may be enough.
    fn is_still_enough(&mut self, search: &Search, plain: &Plain) -> bool {
        let mut enough = plain.enough;
        let mut from = 0;
        while let Some((&node, &look)) = self.looks.range(from..).next() {
            from = node + 1;
            let is_stale =
                self.moment > look.holds_until || look.version != search.machine.nodes()[node as usize].version;
            let room = if is_stale { self.look(search, plain, node) } else { look.room };
            if enough.add_room(room) {
                return true;
            }
        }
        plain.enough.may_fit(self.counted.most_first())
    }

    /// Looks at a node at this moment. Returns the tasks that it has room for.
    fn look(&mut self, search: &Search, plain: &Plain, number: u32) -> u32 {
        let node = &search.machine.nodes()[number as usize];
        let before = self.looks.get(&number).map_or(0, |look| look.room);
        let Some(look) = self.seen(search, plain, node) else {
            self.looks.remove(&number);
            self.counted.change(before, 0);
            return 0;
        };
        self.counted.change(before, look.room);
        self.again.extend(look.again.map(|again| Reverse((again, number))));
        self.looks.insert(number, look);
        look.room
    }

    /// A look at a node at this moment, unless the gap is over or the node has the wrong kind.
    fn seen(&self, search: &Search, plain: &Plain, node: &MachineNode) -> Option<Look> {
        let window = Window::of(self.moment, plain.walltime_seconds);
        let cores = i32::try_from(self.wanted.cores()).unwrap_or(i32::MAX);
        if node.least_with_cores(cores, window).is_none() || !plain.serves_kind(search, node) {
            return None;
        }
        let room = if plain.serves(node, window) { plain.room_in(search, node, window) } else { 0 };
        let holds_until = if node.is_always_open() {
            let next_change = node.line.changes(window.until.plus_micros(-1)).next();
            next_change.map_or(Timestamp::MAX, |at| at.plus_micros(-plain.walltime_micros()))
        } else {
            self.moment
        };
        Some(Look { room, version: node.version, holds_until, again: node.next_opening(self.moment) })
    }
}
