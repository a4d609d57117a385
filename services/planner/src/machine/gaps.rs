//! When and where a number of cores is free for a duration, over all nodes, found without looking at each of them.
//!
//! A gap is a time of a node throughout which a number of cores is free, and which can be made neither longer nor
//! wider. So, as far as cores go, a request fits on a node exactly where it fits into a gap, and the first moment at
//! which it does is the beginning of one. In addition to the general view there are views of the nodes as they serve
//! the jobs of an advance reservation.

mod list;

use super::MachineNode;
use list::GapList;
pub(crate) use list::{Gap, Key, Wanted};
use muster_schemas::Timestamp;
use std::{collections::BTreeMap, sync::Arc};

/// Gaps that begin longer ago than this are computed again: the time that has passed makes them look too long.
const OLD_MICROS: i64 = 3_600 * 1_000_000;

/// With this many changes for each node, computing all gaps again costs no more than updating them.
const MOST_CHANGES: usize = 2;

/// The gaps of all views that were asked for. They follow from the lines: a copy of the machine starts without them.
#[derive(Debug, Default)]
pub(super) struct Views(BTreeMap<Option<Arc<str>>, Gaps>);

impl Clone for Views {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Views {
    /// The free resources of a node have changed, or the jobs that it serves.
    pub fn node_changes(&mut self, at: usize) {
        for gaps in self.0.values_mut() {
            gaps.changed.extend(u32::try_from(at));
        }
        // A view that nobody asks for any more is not kept up to date.
        self.0.retain(|_, gaps| gaps.changed.len() <= MOST_CHANGES * gaps.of_nodes.len());
    }

    /// The set of nodes has changed.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// Updates a view. No gap begins before `now`.
    pub fn refresh(&mut self, reservation: Option<&Arc<str>>, nodes: &[MachineNode], now: Timestamp) {
        let view = reservation.cloned();
        let is_useless = |gaps: &mut Gaps| now < gaps.since || now.micros_since(gaps.since) > OLD_MICROS;
        if self.0.get_mut(&view).is_none_or(is_useless) {
            let gaps = Gaps::of(nodes, reservation.map(|name| &**name), now);
            self.0.insert(view, gaps);
        } else if let Some(gaps) = self.0.get_mut(&view) {
            gaps.refresh(nodes, reservation.map(|name| &**name));
        }
    }

    /// The gaps of a view, if they are up to date.
    pub fn get(&self, reservation: Option<&Arc<str>>) -> Option<&Gaps> {
        self.0.get(&reservation.cloned()).filter(|gaps| gaps.changed.is_empty())
    }
}

/// The gaps of all nodes in one view.
#[derive(Debug)]
pub(crate) struct Gaps {
    since: Timestamp,
    of_nodes: Vec<Vec<Gap>>,
    list: GapList,
    /// Nodes whose gaps are not up to date.
    changed: Vec<u32>,
}

impl Gaps {
    fn of(nodes: &[MachineNode], reservation: Option<&str>, since: Timestamp) -> Self {
        let of_nodes: Vec<Vec<Gap>> =
            (0..).zip(nodes).map(|(at, node)| of_node(at, node, reservation, since)).collect();
        let list = GapList::new(of_nodes.iter().flatten().copied().collect());
        Self { since, of_nodes, list, changed: Vec::new() }
    }

    fn refresh(&mut self, nodes: &[MachineNode], reservation: Option<&str>) {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        for at in changed {
            let Some(node) = nodes.get(at as usize) else { continue };
            let new = of_node(at, node, reservation, self.since);
            let old = std::mem::replace(&mut self.of_nodes[at as usize], new);
            replace(&mut self.list, &old, &self.of_nodes[at as usize]);
        }
    }

    /// The gaps of a node, by its index.
    pub fn of_node(&self, at: usize) -> &[Gap] {
        self.of_nodes.get(at).map_or(&[], Vec::as_slice)
    }

    /// The first gap after another that is wide and long enough.
    pub fn next(&self, after: Key, wanted: &Wanted) -> Option<Gap> {
        self.list.next(after, wanted)
    }

    /// The nodes that have a gap covering the whole window that begins at this moment.
    pub fn covering<'g>(&'g self, moment: Timestamp, wanted: &'g Wanted) -> impl Iterator<Item = u32> + 'g {
        self.list.covering(moment, wanted).map(|gap| gap.node)
    }
}

/// Replaces gaps; `old` and `new` are both in order.
fn replace(list: &mut GapList, old: &[Gap], new: &[Gap]) {
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    loop {
        match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(one), Some(other)) if one == other => {
                old.next();
                new.next();
            }
            (Some(one), other) if other.is_none_or(|other| one.key() <= other.key()) => {
                list.remove(one);
                old.next();
            }
            (_, Some(other)) => {
                list.insert(**other);
                new.next();
            }
            (Some(_), None) => unreachable!("the arm before takes it"),
        }
    }
}

/// The gaps of one node from a moment on, in order.
fn of_node(at: u32, node: &MachineNode, reservation: Option<&str>, since: Timestamp) -> Vec<Gap> {
    if !node.is_available {
        return Vec::new();
    }
    let mut changes: Vec<(Timestamp, u32)> = Vec::new();
    node.each_change(reservation, since, |moment, cores| {
        if moment < Timestamp::MAX {
            changes.push((moment, cores));
        }
    });
    let mut gaps = Vec::with_capacity(changes.len());
    let mut push = |from: Timestamp, until: Timestamp, cores: u32| {
        if cores > 0 {
            gaps.push(Gap { from, until, node: at, cores, is_whole: cores >= node.spec.cores });
        }
    };
    // Backwards, so that gaps are found in order of their beginnings. `open` holds those whose beginning is still
    // ahead, each wider than the one before.
    let mut open: Vec<(Timestamp, u32)> = Vec::new();
    let mut later = Timestamp::MAX;
    for (moment, cores) in changes.into_iter().rev() {
        let mut until = later;
        while let Some((end, wider)) = open.pop_if(|(_, wide)| *wide > cores) {
            push(later, end, wider);
            until = end;
        }
        if open.last().is_none_or(|(_, wide)| *wide < cores) {
            open.push((until, cores));
        }
        later = moment;
    }
    for (until, cores) in open.into_iter().rev() {
        push(since, until, cores);
    }
    gaps.reverse();
    gaps
}
