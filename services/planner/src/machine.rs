//! The nodes and licences, each with its line: how much of them is free from each moment on, and for whom.

mod gaps;
mod node;
mod shared;
mod window;

pub(crate) use gaps::{Gap, Gaps, Key, Wanted};
pub(crate) use node::MachineNode;
use node::Reserved;
pub(crate) use window::{Holding, Window, expected_end};

use crate::{
    model::{ActiveRun, Closure, Demand, Reservation},
    timeline::{ALWAYS, Counts, Line},
};
use muster_domain::sharing::Sharing;
use muster_schemas::{
    NodeId, Timestamp,
    resources::{Alternative, IndexSet, NodeShare, NodeSpec, Placement},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A promise is kept if a run delays it by no more than this and by no more than half of the promise's own time.
const LATE_MICROS: i64 = 60_000_000;

/// The nodes and licences.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    /// By number.
    nodes: Vec<MachineNode>,
    /// All nodes, those of less weight first.
    weights: BTreeSet<(i64, NodeId)>,
    licences: BTreeMap<Arc<str>, Licence>,
    /// Changes whenever a node or a licence is added, removed or changed.
    pub generation: u64,
    /// How many promises are on the lines.
    promises: u32,
    /// How many of them begin at each time.
    promised: BTreeMap<Timestamp, u32>,
    gaps: gaps::Views,
    /// Freed holdings, oldest first, and how many of them were forgotten before.
    freed: Vec<Freed>,
    forgotten: usize,
    /// The job for whose view the lines are open, and the nodes on which that makes a difference.
    view: Option<(Arc<Sharing>, Vec<usize>)>,
    /// At least how many holdings are of jobs that share.
    shared: u32,
}

/// A freed holding, with which an earlier start may become possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freed {
    /// A part of a node for a time.
    Node { node: NodeId, window: Window },
    /// Anything.
    Anything,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Licence {
    total: u32,
    line: Line,
}

impl Licence {
    fn change(&mut self, count: u32, window: Window, takes: bool) {
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        let counts = Counts { cores: if takes { -count } else { count }, ..Counts::default() };
        self.line.add(window.from, window.until, &counts);
    }
}

impl Machine {
    pub fn nodes(&self) -> &[MachineNode] {
        &self.nodes
    }

    /// All nodes in their order, if an alternative wants nodes that follow each other; otherwise nothing.
    pub fn order_for(&self, alternative: &Alternative) -> Vec<NodeId> {
        let nodes = self.nodes.iter().filter(|_| alternative.contiguous);
        nodes.filter(|node| node.is_real()).map(|node| node.id).collect()
    }

    /// The nodes with their numbers, those of less weight first; `None` if all weigh the same.
    pub fn by_weight(&self) -> Option<impl Iterator<Item = (u32, &MachineNode)>> {
        let (least, most) = (self.weights.first()?.0, self.weights.last()?.0);
        let indexed = |(_, id): &(i64, NodeId)| {
            let at = self.index_of(*id)?;
            Some((u32::try_from(at).ok()?, &self.nodes[at]))
        };
        (least != most).then(|| self.weights.iter().filter_map(indexed))
    }

    pub fn index_of(&self, id: NodeId) -> Option<usize> {
        self.nodes.binary_search_by_key(&id, |node| node.id).ok()
    }

    pub fn node(&self, id: NodeId) -> Option<&MachineNode> {
        self.index_of(id).map(|at| &self.nodes[at])
    }

    /// A node that is about to change.
    fn changed_node(&mut self, id: NodeId) -> Option<&mut MachineNode> {
        let at = self.index_of(id)?;
        self.gaps.node_changes(at);
        Some(&mut self.nodes[at])
    }

    /// Updates the gaps that jobs in a reservation (or in none) can have from `now` on.
    pub fn refresh_gaps(&mut self, reservation: Option<&Arc<str>>, now: Timestamp) {
        self.gaps.refresh(reservation, &self.nodes, now);
    }

    /// The gaps that jobs in a reservation (or in none) can have, if they are up to date.
    pub fn gaps(&self, reservation: Option<&Arc<str>>) -> Option<&Gaps> {
        self.gaps.get(reservation)
    }

    /// Adds or changes a node. Nothing is held of it afterwards: the caller puts its holdings back.
    pub fn set_node(&mut self, id: NodeId, spec: Arc<NodeSpec>, is_pool: bool) {
        self.generation += 1;
        self.gaps.forget();
        self.frees_anything();
        let node = MachineNode::new(id, spec, is_pool, &IndexSet::new());
        self.weights.insert((node.spec.weight(), id));
        match self.nodes.binary_search_by_key(&id, |node| node.id) {
            Ok(at) => self.replace(at, node),
            Err(at) => self.nodes.insert(at, node),
        }
    }

    /// Sets the GPUs of a node that cannot be used; returns whether that changed anything. If it did, nothing is held of
    /// the node afterwards, as in [`Machine::set_node`].
    pub fn set_faulty_gpus(&mut self, id: NodeId, faulty: &IndexSet) -> bool {
        let Some(at) = self.index_of(id).filter(|at| self.nodes[*at].faulty_gpus() != *faulty) else { return false };
        self.generation += 1;
        self.gaps.forget();
        self.frees_anything();
        let node = &self.nodes[at];
        self.replace(at, MachineNode::new(id, node.spec.clone(), node.is_pool(), faulty));
        true
    }

    /// The new node serves jobs when the old one did.
    fn replace(&mut self, at: usize, node: MachineNode) {
        let old = std::mem::replace(&mut self.nodes[at], node);
        let node = &mut self.nodes[at];
        if old.spec.weight() != node.spec.weight() {
            self.weights.remove(&(old.spec.weight(), node.id));
        }
        (node.is_available, node.closures, node.reservations) = (old.is_available, old.closures, old.reservations);
        node.awaited = old.awaited;
    }

    /// Makes a node a part of a planning domain until then, without the rest of the real node.
    pub fn set_domain(&mut self, id: NodeId, key: &Arc<str>, until: Timestamp, rest: &NodeShare) {
        let Some(node) = self.changed_node(id) else { return };
        node.domain = Some(key.clone());
        node.reservations =
            vec![Reserved { from: ALWAYS, until, name: key.clone(), overlaps: false, is_flexible: false }];
        if !rest.cores.is_empty() {
            let always = Window { from: ALWAYS, until: Timestamp::MAX };
            node.change(rest, always, Holding::Run { until: Timestamp::MAX }, true);
        }
    }

    /// Whether a part of a planning domain serves the jobs there.
    pub fn expose(&mut self, id: NodeId, is_exposed: bool) {
        let Some(node) = self.changed_node(id) else { return };
        let Some(key) = node.domain.clone() else { return };
        let name = if is_exposed { key } else { format!("{key} hidden").into() };
        node.reservations.iter_mut().for_each(|reserved| reserved.name = name.clone());
        self.frees_anything();
    }

    pub fn remove_node(&mut self, id: NodeId) {
        if let Some(at) = self.index_of(id) {
            self.generation += 1;
            self.gaps.forget();
            let node = self.nodes.remove(at);
            self.weights.remove(&(node.spec.weight(), id));
        }
    }

    /// Sets whether a node is available; returns whether that changed anything.
    pub fn set_available(&mut self, id: NodeId, is_available: bool) -> bool {
        let Some(at) = self.index_of(id) else { return false };
        if self.nodes[at].is_available == is_available {
            return false;
        }
        self.nodes[at].is_available = is_available;
        self.gaps.node_changes(at);
        self.generation += 1;
        self.frees_anything();
        true
    }

    pub fn set_closures(&mut self, id: NodeId, closures: Vec<Closure>) {
        self.frees_anything();
        if let Some(node) = self.changed_node(id) {
            node.closures = closures;
            node.closures.sort_unstable();
        }
    }

    /// Keeps the nodes of a new reservation.
    pub fn set_reservation(&mut self, reservation: &Reservation) {
        self.frees_anything();
        for id in &reservation.nodes {
            self.reserve_node(*id, reservation);
        }
    }

    /// Adds a reservation that a node does not have yet.
    pub fn reserve_node(&mut self, id: NodeId, reservation: &Reservation) {
        if let Some(node) = self.changed_node(id) {
            node.reservations.push(Reserved {
                from: reservation.start,
                until: reservation.end,
                name: reservation.name.clone(),
                overlaps: reservation.overlaps,
                is_flexible: reservation.is_flexible,
            });
            node.reservations.sort_unstable();
        }
    }

    pub fn remove_reservation(&mut self, name: &str) {
        self.frees_anything();
        for (at, node) in self.nodes.iter_mut().enumerate() {
            let there_were = node.reservations.len();
            node.reservations.retain(|reserved| *reserved.name != *name);
            if node.reservations.len() < there_were {
                self.gaps.node_changes(at);
            }
        }
    }

    pub fn set_licence(&mut self, name: &str, total: u32) {
        self.frees_anything();
        self.generation += 1;
        let count = |total: u32| i32::try_from(total).unwrap_or(i32::MAX);
        match self.licences.get_mut(name) {
            Some(licence) => {
                let difference = Counts { cores: count(total) - count(licence.total), ..Counts::default() };
                licence.line.add(ALWAYS, Timestamp(i64::MAX), &difference);
                licence.total = total;
            }
            None => {
                let line = Line::new(Counts { cores: count(total), ..Counts::default() });
                self.licences.insert(name.into(), Licence { total, line });
            }
        }
    }

    /// The total of each licence.
    pub fn licences(&self) -> impl Iterator<Item = (&str, u32)> {
        self.licences.iter().map(|(name, licence)| (&**name, licence.total))
    }

    /// How many of a licence are free throughout a window.
    pub fn licence_in(&self, name: &str, window: Window) -> u32 {
        let least = self.licences.get(name).map_or(0, |licence| licence.line.least(window.from, window.until).cores);
        u32::try_from(least).unwrap_or(0)
    }

    /// The moments after `from` at which more of a licence may become free.
    pub fn licence_openings(&self, name: &str, from: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        self.licences.get(name).into_iter().flat_map(move |licence| licence.line.changes(from))
    }

    /// How many promises are on the lines.
    pub fn promises(&self) -> u32 {
        self.promises
    }

    /// When the first promise begins, if there is one.
    pub fn first_promise(&self) -> Option<Timestamp> {
        self.promised.first_key_value().map(|(start, _)| *start)
    }

    /// Takes the holdings of a placement.
    pub fn take(&mut self, demand: &Demand, placement: &Placement, holding: Holding) {
        self.count_promise(holding, 1);
        self.change(demand, placement, holding, true);
    }

    /// A run has a share, of which another run that had it too has given back cores and GPUs.
    pub fn keep_taken(&mut self, share: &NodeShare) {
        if let Some(node) = self.changed_node(share.node) {
            node.keep_taken(share);
        }
    }

    /// Gives back what was taken with the same arguments, to take it again or for use by the same job.
    pub fn lend(&mut self, demand: &Demand, placement: &Placement, holding: Holding) {
        self.count_promise(holding, -1);
        self.change(demand, placement, holding, false);
    }

    /// Gives back for good what was taken with the same arguments.
    pub fn give_back(&mut self, demand: &Demand, placement: &Placement, holding: Holding) {
        self.lend(demand, placement, holding);
        self.frees(demand, placement, holding);
    }

    /// Lent holdings will not be taken again.
    pub fn frees(&mut self, demand: &Demand, placement: &Placement, holding: Holding) {
        let window = holding.window(demand, placement);
        for (component, placed) in demand.components.iter().zip(&placement.components) {
            let alternative = component.alternatives.get(placed.alternative as usize);
            let has_licences = alternative.is_none_or(|alternative| !alternative.licences.is_empty());
            self.freed.extend(has_licences.then_some(Freed::Anything));
            self.freed.extend(placed.shares.iter().map(|share| Freed::Node { node: share.node, window }));
        }
    }

    /// Anything may have been freed.
    pub fn frees_anything(&mut self) {
        if self.freed.last() == Some(&Freed::Anything) {
            // Noted once, but it counts again: some looked in between.
            self.forgotten += 1;
        } else {
            self.freed.push(Freed::Anything);
        }
    }

    /// How much was freed so far, for [`Machine::freed_since`].
    pub fn freed_so_far(&self) -> usize {
        self.forgotten + self.freed.len()
    }

    /// Holdings freed since then are held again.
    pub fn take_back_freed(&mut self, so_far: usize) {
        self.freed.truncate(so_far.saturating_sub(self.forgotten));
    }

    /// Holdings known to have been freed since then, and the number of the first of them.
    pub fn freed_since(&self, so_far: usize) -> (usize, &[Freed]) {
        let first = so_far.max(self.forgotten);
        (first, self.freed.get(first - self.forgotten..).unwrap_or(&[]))
    }

    /// Forgets what was freed before.
    pub fn forget_freed_before(&mut self, so_far: usize) {
        let known = so_far.saturating_sub(self.forgotten).min(self.freed.len());
        self.freed.drain(..known);
        self.forgotten += known;
    }

    /// A suspended run waits for the cores of `has` that are not in `held`: others use them, and nobody new gets them.
    pub fn await_cores(&mut self, run: &ActiveRun, has: &Placement) {
        self.close_view();
        let held = run.placement.shares();
        for (share, held) in has.shares().zip(held).filter(|(share, held)| share.cores != held.cores) {
            if let Some(at) = self.index_of(held.node) {
                let cores = share.cores.difference(&held.cores);
                self.nodes[at].await_cores(run.job, run.demand.sharing.clone(), &cores);
            }
        }
    }

    /// A run waits for no cores any more.
    pub fn await_none(&mut self, run: &ActiveRun) {
        self.close_view();
        for share in run.placement.shares() {
            if let Some(at) = self.index_of(share.node) {
                self.nodes[at].awaited.remove(&run.job);
            }
        }
    }

    /// Opens the lines for the view of a job that shares: what it may overlap is not on them until the view is closed.
    pub fn open_view(&mut self, sharing: &Arc<Sharing>) {
        self.close_view();
        let concerned = (0..).zip(&self.nodes).filter(|(_, node)| node.is_shared_with(sharing));
        let concerned: Vec<usize> = if self.shared == 0 { Vec::new() } else { concerned.map(|(at, _)| at).collect() };
        self.set_view(sharing, &concerned, true);
        self.view = Some((sharing.clone(), concerned));
    }

    /// Closes the view, if one is open.
    pub fn close_view(&mut self) {
        if let Some((sharing, concerned)) = self.view.take() {
            self.set_view(&sharing, &concerned, false);
        }
    }

    fn set_view(&mut self, sharing: &Sharing, concerned: &[usize], is_open: bool) {
        for at in concerned {
            self.gaps.node_changes(*at);
            self.nodes[*at].set_view(sharing, is_open);
        }
    }

    /// Whether jobs hold something that share it with others.
    pub fn is_shared(&self) -> bool {
        self.shared > 0
    }

    fn change_share(&mut self, demand: &Demand, share: &NodeShare, when: (Window, Holding), takes: bool) {
        let Some(at) = self.index_of(share.node) else { return };
        self.gaps.node_changes(at);
        let Some(sharing) = &demand.sharing else { return self.nodes[at].change(share, when.0, when.1, takes) };
        self.shared = self.shared.saturating_add_signed(if takes { 1 } else { -1 });
        let mut viewer = None;
        if let Some((open, concerned)) = &mut self.view {
            viewer = Some(&**open);
            if !concerned.contains(&at) {
                concerned.push(at);
            }
        }
        self.nodes[at].change_shared(share, when, takes, sharing, viewer);
    }

    fn count_promise(&mut self, holding: Holding, by: i32) {
        if let Holding::Promise { start } = holding {
            self.promises = self.promises.saturating_add_signed(by);
            let there = self.promised.entry(start).or_default();
            *there = there.saturating_add_signed(by);
            if *there == 0 {
                self.promised.remove(&start);
            }
        }
    }

    fn change(&mut self, demand: &Demand, placement: &Placement, holding: Holding, takes: bool) {
        let window = holding.window(demand, placement);
        for (component, placed) in demand.components.iter().zip(&placement.components) {
            let alternative = component.alternatives.get(placed.alternative as usize);
            for share in &placed.shares {
                self.change_share(demand, share, (window, holding), takes);
            }
            for (name, count) in alternative.into_iter().flat_map(|alternative| &alternative.licences) {
                if let Some(licence) = self.licences.get_mut(name.as_str()) {
                    licence.change(*count, window, takes);
                }
            }
        }
    }

    /// Takes the holdings of a placement on some nodes only.
    pub fn take_nodes(
        &mut self,
        demand: &Demand,
        placement: &Placement,
        holding: Holding,
        is_wanted: impl Fn(NodeId) -> bool,
    ) {
        let window = holding.window(demand, placement);
        for share in placement.shares().filter(|share| is_wanted(share.node)) {
            self.change_share(demand, share, (window, holding), true);
        }
    }

    /// Takes the holdings of a placement of one licence only.
    pub fn take_licence(&mut self, demand: &Demand, placement: &Placement, holding: Holding, name: &str) {
        let Some(licence) = self.licences.get_mut(name) else { return };
        let window = holding.window(demand, placement);
        for (component, placed) in demand.components.iter().zip(&placement.components) {
            let alternative = component.alternatives.get(placed.alternative as usize);
            let count = alternative.and_then(|alternative| alternative.licences.get(name));
            licence.change(count.copied().unwrap_or(0), window, true);
        }
    }

    /// Whether the licences of a placement are free now.
    pub fn has_licences(&self, demand: &Demand, placement: &Placement, now: Timestamp) -> bool {
        let mut wanted: BTreeMap<&str, u32> = BTreeMap::new();
        for (component, placed) in demand.components.iter().zip(&placement.components) {
            let alternative = component.alternatives.get(placed.alternative as usize);
            for (name, count) in alternative.into_iter().flat_map(|alternative| &alternative.licences) {
                *wanted.entry(name).or_default() += count;
            }
        }
        wanted.into_iter().all(|(name, count)| self.licence_in(name, Window { from: now, until: now }) >= count)
    }

    /// Whether the nodes of a promise serve its job all the time.
    pub fn serves(&self, demand: &Demand, placement: &Placement, start: Timestamp) -> bool {
        let window = Holding::Promise { start }.window(demand, placement);
        demand.components.iter().zip(&placement.components).all(|(component, placed)| {
            let mut nodes = placed.shares.iter().map(|share| self.node(share.node));
            nodes.all(|node| node.is_some_and(|node| node.serves(window, component.reservation.as_deref())))
        })
    }

    /// Whether a promise can be kept: its nodes serve it, and its resources are free except for a little at its
    /// beginning. A run that begins or ends a moment late is waited for; it breaks no promise.
    pub fn keeps(&self, demand: &Demand, placement: &Placement, start: Timestamp, now: Timestamp) -> bool {
        let window = Holding::Promise { start }.window(demand, placement);
        let half = window.until.micros_since(window.from) / 2;
        let from = start.max(now).plus_micros(half.min(LATE_MICROS));
        let window = Window { from, ..window };
        self.serves(demand, placement, start.max(now))
            && (window.from >= window.until || !self.overbooks(demand, placement, window))
    }

    /// Whether more is held than exists, in a window, on the nodes and licences of a placement.
    pub fn overbooks(&self, demand: &Demand, placement: &Placement, window: Window) -> bool {
        placement.shares().any(|share| self.overbooks_node(share.node, window))
            || self.overbooks_licences(demand, placement, window)
    }

    /// The same for one node.
    pub fn overbooks_node(&self, node: NodeId, window: Window) -> bool {
        let node = self.node(node).filter(|node| node.promises > 0);
        node.is_some_and(|node| node.line.least(window.from, window.until).is_overbooked())
    }

    /// The same for the licences only.
    pub fn overbooks_licences(&self, demand: &Demand, placement: &Placement, window: Window) -> bool {
        let licence_is_overbooked = |name: &String| {
            let licence = self.licences.get(name.as_str());
            licence.is_none_or(|licence| licence.line.least(window.from, window.until).cores < 0)
        };
        demand.components.iter().zip(&placement.components).any(|(component, placed)| {
            let alternative = component.alternatives.get(placed.alternative as usize);
            alternative.into_iter().flat_map(|alternative| alternative.licences.keys()).any(licence_is_overbooked)
        })
    }
}
