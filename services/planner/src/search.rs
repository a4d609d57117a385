//! Whether a demand fits at a moment, and when it fits first.

use crate::{
    class::Class,
    engine::Run,
    free::{Free, FreeNode, Undo},
    machine::{Machine, MachineNode, Window},
    model::{ComponentDemand, Demand},
    place::{self, Enough, Scope},
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    cluster::QueueSpec,
    resources::{Alternative, ComponentPlacement, Level, Placement},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
    sync::Arc,
};

/// Before and behind all jobs of the same moment.
const FIRST_JOB: JobId = JobId::job(0);
const LAST_JOB: JobId = JobId::task(u64::MAX, u32::MAX);

/// What a search looks at.
#[derive(Clone, Copy)]
pub(crate) struct Search<'s> {
    pub machine: &'s Machine,
    pub queues: &'s BTreeMap<Arc<str>, QueueSpec>,
    pub default_memory_per_core_bytes: Option<u64>,
    /// The present. What starts then takes cores that are free now; what starts later counts.
    pub now: Timestamp,
    /// Whether what is free only grows from now on, for jobs without reservation: no promise and no closure is ahead.
    pub only_grows: bool,
    /// When which runs end, ascending, and what they hold.
    pub ends: &'s BTreeSet<(Timestamp, JobId)>,
    pub runs: &'s HashMap<JobId, Run>,
    /// The free cores of each node now, if they are known: most nodes need no closer look.
    pub free_cores_now: Option<&'s [u32]>,
}

/// A place in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub start: Timestamp,
    pub placement: Placement,
}

/// What the components placed so far have of the machine.
#[derive(Default)]
struct Taken<'d> {
    nodes: BTreeSet<NodeId>,
    licences: BTreeMap<&'d str, u32>,
    /// Of several components, how long the last of them may run: as long all of them hold what they have.
    longest: Option<Option<u64>>,
}

impl<'s> Search<'s> {
    /// Where the demand fits if it starts then. Of the alternatives of a component the shortest that fits.
    pub fn at(&self, demand: &Demand, start: Timestamp) -> Option<Placement> {
        self.with_choice(demand, start, None)
    }

    fn with_choice(&self, demand: &Demand, start: Timestamp, choice: Option<u32>) -> Option<Placement> {
        let mut taken = Taken { longest: longest(demand), ..Taken::default() };
        let mut components = Vec::with_capacity(demand.components.len());
        for component in &demand.components {
            let placed = self.component(component, start, choice, &taken)?;
            if demand.components.len() > 1 {
                taken.nodes.extend(placed.shares.iter().map(|share| share.node));
                for (name, count) in &component.alternatives[placed.alternative as usize].licences {
                    *taken.licences.entry(name).or_default() += count;
                }
            }
            components.push(placed);
        }
        Some(Placement { components })
    }

    fn component(
        &self,
        component: &ComponentDemand,
        start: Timestamp,
        choice: Option<u32>,
        taken: &Taken,
    ) -> Option<ComponentPlacement> {
        let alternatives = &component.alternatives;
        if let Some(number) = choice.or((alternatives.len() == 1).then_some(0)) {
            return self.alternative(component, number, alternatives.get(number as usize)?, start, taken);
        }
        let mut ordered: Vec<(u32, &Alternative)> = (0..).zip(alternatives.iter()).collect();
        ordered.sort_by_key(|(_, alternative)| alternative.walltime_seconds.unwrap_or(u64::MAX));
        ordered
            .into_iter()
            .find_map(|(number, alternative)| self.alternative(component, number, alternative, start, taken))
    }

    fn alternative(
        &self,
        component: &ComponentDemand,
        number: u32,
        alternative: &Alternative,
        start: Timestamp,
        taken: &Taken,
    ) -> Option<ComponentPlacement> {
        let window = Window::of(start, taken.longest.unwrap_or(alternative.walltime_seconds));
        let licences = self.free_licences(alternative, window, taken);
        let lacks = |(name, count): (&String, &u32)| licences.get(name.as_str()).is_none_or(|free| free < count);
        if alternative.licences.iter().any(lacks) {
            return None;
        }
        let nodes = self.candidates(component, alternative, window, taken);
        let mut free = Free::new(nodes, licences);
        let scope = Scope {
            queue_nodes: self.queue_nodes(component),
            taken_nodes: &taken.nodes,
            default_memory_per_core_bytes: self.default_memory_per_core_bytes,
        };
        place::place_alternative(&mut free, &scope, number, alternative, &mut Undo::default())
    }

    fn free_licences<'d>(&self, alternative: &'d Alternative, window: Window, taken: &Taken) -> BTreeMap<&'d str, u32> {
        let names = alternative.licences.keys().map(String::as_str);
        let free = |name: &str| {
            let free = self.machine.licence_in(name, window);
            free.saturating_sub(taken.licences.get(name).copied().unwrap_or(0))
        };
        names.map(|name| (name, free(name))).collect()
    }

    /// The nodes that have something for the alternative all through a window, as many as it takes to serve it.
    fn candidates(
        &self,
        component: &ComponentDemand,
        alternative: &Alternative,
        window: Window,
        taken: &Taken,
    ) -> Vec<FreeNode<'s>> {
        let mut enough = Enough::of(alternative, self.default_memory_per_core_bytes);
        let whole_sockets = asks_for_sockets(alternative);
        let reservation = component.reservation.as_deref();
        let queue_nodes = self.queue_nodes(component);
        let mut candidates = Vec::new();
        // Who asks for all nodes there are also asks for those on which nothing is free.
        let counts_full = enough.is_none();
        let free_cores_now = self.free_cores_now.filter(|_| !counts_full && window.from <= self.now);
        let least_cores = enough.as_ref().map_or(1, Enough::cpus_per_task);
        for (at, node) in self.machine.nodes().iter().enumerate() {
            if free_cores_now.is_some_and(|cores| cores[at] < least_cores)
                || !node.serves(window, reservation)
                || taken.nodes.contains(&node.id)
            {
                continue;
            }
            let free = match node.free_in(window, self.now, whole_sockets) {
                Some(free) => free,
                None if counts_full => node.full_in(window),
                None => continue,
            };
            if let Some(enough) = &mut enough {
                if !serves_kind(node, queue_nodes, alternative) || !fits_sharing(&free, alternative) {
                    continue;
                }
                let is_enough = enough.add(&free);
                candidates.push(free);
                if is_enough {
                    break;
                }
            } else {
                candidates.push(free);
            }
        }
        candidates
    }

    fn queue_nodes(&self, component: &ComponentDemand) -> &'s [String] {
        self.queues.get(&component.queue).map_or(&[][..], |queue| &queue.nodes)
    }

    /// The first moment from `from` on, and before `bound`, at which the demand fits, and where. Of several alternatives of
    /// a job with one component the one that ends first is taken, of equal ones the first; several components start
    /// together at the first moment at which all fit.
    pub fn earliest(&self, class: &Class, from: Timestamp, bound: Timestamp) -> Option<Found> {
        let demand = &*class.demand;
        match &demand.components[..] {
            [component] if component.alternatives.len() > 1 => {
                let ends = |found: &Found, alternative: &Alternative| {
                    Window::of(found.start, alternative.walltime_seconds).until
                };
                let mut best: Option<(Timestamp, Found)> = None;
                for (number, alternative) in (0..).zip(component.alternatives.iter()) {
                    let Some(found) = self.earliest_of(demand, Some(number), from, bound) else { continue };
                    let end = ends(&found, alternative);
                    if best.as_ref().is_none_or(|(best_end, _)| end < *best_end) {
                        best = Some((end, found));
                    }
                }
                best.map(|(_, found)| found)
            }
            _ => self.earliest_of(demand, None, from, bound),
        }
    }

    fn earliest_of(&self, demand: &Demand, choice: Option<u32>, from: Timestamp, bound: Timestamp) -> Option<Found> {
        if let Some((cores, micros)) = self.as_pool(demand) {
            let line = &self.machine.nodes()[0].line;
            let start = line.earliest_cores(cores, micros, from, bound, Timestamp::MAX)?;
            // It cannot be earlier, but somebody may have the node for himself.
            if let Some(placement) = self.with_choice(demand, start, choice) {
                return Some(Found { start, placement });
            }
        }
        if from < bound
            && let Some(placement) = self.with_choice(demand, from, choice)
        {
            return Some(Found { start: from, placement });
        }
        if self.only_grows && self.is_monotone(demand) {
            return self.first_of_growing(demand, choice, from, bound);
        }
        let starts = self.openings(demand, from, bound);
        let mut may_fit = Sweep::of(self, demand, choice, from);
        starts.into_iter().find_map(|start| {
            if may_fit.as_mut().is_some_and(|sweep| !sweep.may_fit_at(start)) {
                return None;
            }
            self.with_choice(demand, start, choice).map(|placement| Found { start, placement })
        })
    }

    /// Whether a job that has a slot may find an earlier one, as far as can be told while it still has it.
    ///
    /// An earlier window on a pool ends within the slot or before, and the slot is the job's own, so only what comes
    /// before it has to be free.
    pub fn may_improve(&self, class: &Class, slot_start: Timestamp) -> bool {
        let Some((cores, micros)) = self.as_pool(&class.demand) else { return true };
        let line = &self.machine.nodes()[0].line;
        line.earliest_cores(cores, micros, self.now, slot_start, slot_start).is_some()
    }

    /// Cores and duration, if the machine is one node and the demand is for nothing but cores of it.
    fn as_pool(&self, demand: &Demand) -> Option<(i32, i64)> {
        let ([node], [component]) = (self.machine.nodes(), &demand.components[..]) else { return None };
        let [alternative] = &component.alternatives[..] else { return None };
        let [request] = &alternative.requests[..] else { return None };
        let only_cores = request.path.is_empty()
            && request.memory.is_none()
            && self.default_memory_per_core_bytes.is_none()
            && request.gpus.is_none()
            && request.tasks_per_node.is_none()
            && alternative.licences.is_empty()
            && component.reservation.is_none()
            && node.is_always_open()
            && fits_any_sharing(alternative)
            && serves_kind(node, self.queue_nodes(component), alternative);
        let cores = u64::from(request.tasks.unwrap_or(1).max(1)) * u64::from(request.cpus_per_task.max(1));
        let seconds = i64::try_from(alternative.walltime_seconds?).ok()?;
        let micros = seconds.checked_mul(1_000_000)?;
        let cores = i32::try_from(cores).ok()?;
        only_cores.then_some((cores, micros))
    }

    /// Whether a demand that fits also fits with more free.
    fn is_monotone(&self, demand: &Demand) -> bool {
        // With more free, an earlier component may take the only node of a later one.
        let [component] = &demand.components[..] else { return false };
        let mut alternatives = component.alternatives.iter();
        component.reservation.is_none()
            && alternatives.all(|alternative| Enough::of(alternative, self.default_memory_per_core_bytes).is_some())
    }

    /// The first moment at which it fits if more is free with every run that ends, and only then.
    fn first_of_growing(
        &self,
        demand: &Demand,
        choice: Option<u32>,
        from: Timestamp,
        bound: Timestamp,
    ) -> Option<Found> {
        let after = (Bound::Excluded((from, LAST_JOB)), Bound::Excluded((bound.min(Timestamp::MAX), FIRST_JOB)));
        let ends = self.ends.range(after);
        let found = |start| self.with_choice(demand, start, choice).map(|placement| Found { start, placement });
        if let Some(mut rooms) = Rooms::of(self, demand, choice, from) {
            let mut ends = ends.peekable();
            while let Some((end, job)) = ends.next() {
                if let Some(run) = self.runs.get(job) {
                    rooms.look_again(self, run.nodes(), *end);
                }
                // All that end together count together.
                let is_last = ends.peek().is_none_or(|(next, _)| next != end);
                if is_last
                    && rooms.may_fit()
                    && let Some(found) = found(*end)
                {
                    return Some(found);
                }
            }
            return None;
        }
        let mut starts: Vec<Timestamp> = ends.map(|(end, _)| *end).collect();
        starts.dedup();
        let at = starts.partition_point(|start| self.with_choice(demand, *start, choice).is_none());
        found(*starts.get(at)?)
    }

    /// The moments after `from` and before `bound` at which more may become free, ascending.
    fn openings(&self, demand: &Demand, from: Timestamp, bound: Timestamp) -> Vec<Timestamp> {
        let nodes = self.machine.nodes().iter().filter(|node| node.is_available);
        let mut openings: Vec<Timestamp> = nodes.flat_map(|node| node.openings(from)).collect();
        for component in &demand.components {
            for name in component.alternatives.iter().flat_map(|alternative| alternative.licences.keys()) {
                openings.extend(self.machine.licence_openings(name, from).filter(|at| *at < Timestamp::MAX));
            }
        }
        openings.retain(|at| *at < bound);
        openings.sort_unstable();
        openings.dedup();
        openings
    }
}

/// Whether a node is of the kind that the requests of an alternative and the queue ask for.
fn serves_kind(node: &MachineNode, queue_nodes: &[String], alternative: &Alternative) -> bool {
    (queue_nodes.is_empty() || queue_nodes.contains(&node.spec.name))
        && alternative.requests.iter().all(|request| muster_domain::requests::node_serves(&node.spec, request))
}

fn fits_sharing(free: &FreeNode, alternative: &Alternative) -> bool {
    free.idle || fits_any_sharing(alternative)
}

fn fits_any_sharing(alternative: &Alternative) -> bool {
    let shared = muster_schemas::resources::Sharing::Shared;
    alternative.requests.iter().all(|request| request.sharing == shared)
}

/// The longest walltime of all alternatives, if there are several components; `Some(None)` if one has none.
fn longest(demand: &Demand) -> Option<Option<u64>> {
    let alternatives = || demand.components.iter().flat_map(|component| component.alternatives.iter());
    let all_have_one = || alternatives().map(|alternative| alternative.walltime_seconds).collect::<Option<Vec<u64>>>();
    (demand.components.len() > 1).then(|| all_have_one().and_then(|walltimes| walltimes.into_iter().max()))
}

/// Which sockets are free later cannot be told from counts, so such a request gets nodes whose cores are all free.
fn asks_for_sockets(alternative: &Alternative) -> bool {
    alternative.requests.iter().any(|request| request.path.iter().any(|part| part.level == Level::Socket))
}

/// How much room for a plain request all nodes have together, while time goes on and runs end.
struct Rooms<'r> {
    component: &'r ComponentDemand,
    alternative: &'r Alternative,
    enough: Enough<'r>,
    of_nodes: Vec<u32>,
    counted: RoomCounts,
}

impl<'r> Rooms<'r> {
    fn of(search: &Search, demand: &'r Demand, choice: Option<u32>, from: Timestamp) -> Option<Self> {
        let [component] = &demand.components[..] else { return None };
        let number = choice.or((component.alternatives.len() == 1).then_some(0))?;
        let alternative = component.alternatives.get(number as usize)?;
        let enough = Enough::of(alternative, search.default_memory_per_core_bytes)?;
        let (of_nodes, counted) = (Vec::new(), RoomCounts::default());
        let mut rooms = Self { component, alternative, enough, of_nodes, counted };
        let free_cores_now = search.free_cores_now.filter(|_| from <= search.now);
        let least_cores = rooms.enough.cpus_per_task();
        for (at, node) in search.machine.nodes().iter().enumerate() {
            let is_full = free_cores_now.is_some_and(|cores| cores[at] < least_cores);
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
        let window = Window { from: moment, until: moment };
        let free = node.free_in(window, search.now, false).filter(|free| fits_sharing(free, self.alternative));
        free.map_or(0, |free| self.enough.room(&free))
    }

    fn look_again(&mut self, search: &Search, nodes: impl Iterator<Item = NodeId>, moment: Timestamp) {
        for at in nodes.filter_map(|node| search.machine.index_of(node)) {
            let room = self.room(search, &search.machine.nodes()[at], moment);
            let before = std::mem::replace(&mut self.of_nodes[at], room);
            self.counted.change(before, room);
        }
    }

    /// Whether it may fit at the moment that was last looked at.
    fn may_fit(&self) -> bool {
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

/// A pass over all moments that tells where a plain request cannot fit, without a look at the nodes at each of them.
///
/// A window that begins between two steps of a node holds the first of them whole or in part, so the node's room at the
/// first moment of that time is the most that it can have until the next step.
struct Sweep<'r> {
    enough: Enough<'r>,
    /// When the room of some node changes, ascending: what it was and what it becomes.
    changes: Vec<(Timestamp, u32, u32)>,
    next: usize,
    counted: RoomCounts,
}

impl<'r> Sweep<'r> {
    fn of(search: &Search, demand: &'r Demand, choice: Option<u32>, from: Timestamp) -> Option<Self> {
        let [component] = &demand.components[..] else { return None };
        let number = choice.or((component.alternatives.len() == 1).then_some(0))?;
        let alternative = component.alternatives.get(number as usize)?;
        let enough = Enough::of(alternative, search.default_memory_per_core_bytes)?;
        let queue_nodes = search.queue_nodes(component);
        let whole_sockets = asks_for_sockets(alternative);
        let mut changes = Vec::new();
        for node in search.machine.nodes() {
            if !node.is_available || !serves_kind(node, queue_nodes, alternative) {
                continue;
            }
            let mut before = 0;
            let mut starts: Vec<Timestamp> = std::iter::once(from).chain(node.openings(from)).collect();
            starts.sort_unstable();
            for start in starts {
                let window = Window::of(start, alternative.walltime_seconds);
                let free = node
                    .serves(window, component.reservation.as_deref())
                    .then(|| node.free_in(window, search.now, whole_sockets))
                    .flatten()
                    .filter(|free| fits_sharing(free, alternative));
                let room = free.map_or(0, |free| enough.room(&free));
                if room != before {
                    changes.push((start, before, room));
                    before = room;
                }
            }
        }
        changes.sort_unstable_by_key(|(start, ..)| *start);
        Some(Self { enough, changes, next: 0, counted: RoomCounts::default() })
    }

    /// Whether it may fit then. The moments asked for ascend.
    fn may_fit_at(&mut self, start: Timestamp) -> bool {
        while let Some((_, before, after)) = self.changes.get(self.next).filter(|(at, ..)| *at <= start) {
            self.counted.change(*before, *after);
            self.next += 1;
        }
        self.enough.may_fit(self.counted.most_first())
    }
}
