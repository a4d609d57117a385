//! Whether a demand fits at a moment, and when it fits first.

mod chances;
mod kinds;
mod more;
mod onward;
mod plain;
mod pool;
mod rooms;
mod shared;
mod sweep;
mod view;

use crate::{
    class::Class,
    free::{Free, FreeNode, Undo},
    machine::{MachineNode, Window},
    model::{ComponentDemand, Demand},
    place::{self, EachNode, Enough, Scope, Wanted},
};
use kinds::{asks_for_sockets, fits_any_sharing, fits_sharing};
pub(crate) use kinds::{longest, serves_kind};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    resources::{Alternative, ComponentPlacement, Placement},
};
use plain::Plain;
use rooms::Rooms;
pub(crate) use shared::Spread;
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};
pub(crate) use sweep::Sweep;
use view::Taken;
pub(crate) use view::{Known, Search};

/// Before and after all jobs of the same moment.
const FIRST_JOB: JobId = JobId::job(0);
const LAST_JOB: JobId = JobId::task(u64::MAX, u32::MAX);

/// A start and its placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub start: Timestamp,
    pub placement: Placement,
}

/// The rank of a way to serve a job with one component: the least is the best. Without a deadline it is the one that
/// ends first (OAR-G-08). With one it is the first to start among those that end by then, and among equals the first
/// given: a job with a deadline gets as much time as is left (SL-C-13).
pub(crate) fn order_of_ways(start: Timestamp, end: Timestamp, deadline: Option<Timestamp>) -> (bool, Timestamp) {
    match deadline {
        None => (false, end),
        Some(deadline) => (end > deadline, start),
    }
}

impl<'s> Search<'s> {
    /// Where the demand fits if it starts then. If a component has alternatives, the shortest that fits; with a
    /// deadline the first given that fits and is over by then.
    pub fn at(&self, demand: &Demand, start: Timestamp) -> Option<Placement> {
        self.with_choice(demand, start, None)
    }

    fn with_choice(&self, demand: &Demand, start: Timestamp, choice: Option<u32>) -> Option<Placement> {
        if let Some((cores, micros)) = self.as_pool(demand)
            && self.machine.nodes()[0].is_pool()
        {
            return self.on_pool(
                demand,
                cores,
                Window { from: start, until: start.plus_micros(micros).min(Timestamp::MAX) },
            );
        }
        let [component] = &demand.components[..] else { return self.together(demand, start, choice) };
        let placed = self.component((0, component), start, choice, &Taken::default())?;
        Some(Placement { components: vec![placed] })
    }

    /// Places several components that start together: each on separate nodes if there is a way, otherwise on shared
    /// ones if that is allowed.
    fn together(&self, demand: &Demand, start: Timestamp, choice: Option<u32>) -> Option<Placement> {
        let apart = self.one_by_one(demand, start, choice, Spread::Apart(&[])).or_else(|| {
            let dealt = self.deal(demand, start, choice)?;
            self.one_by_one(demand, start, choice, Spread::Apart(&dealt))
        });
        let shared = || self.one_by_one(demand, start, choice, Spread::Shared);
        apart.or_else(|| if self.may_share(demand) { shared() } else { None })
    }

    /// Places one component after the other.
    fn one_by_one(&self, demand: &Demand, start: Timestamp, choice: Option<u32>, spread: Spread) -> Option<Placement> {
        let mut taken = Taken { longest: Some(longest(demand)), ..Taken::default() };
        let mut components = vec![ComponentPlacement::default(); demand.components.len()];
        let mut placed_nodes: BTreeSet<NodeId> = BTreeSet::new();
        for number in self.order_in(demand, spread) {
            let component = &demand.components[number];
            taken.nodes = spread.of_others(number);
            taken.nodes.extend(&placed_nodes);
            let placed = self.component((number, component), start, choice, &taken)?;
            for share in &placed.shares {
                if spread.lets_share(share) {
                    taken.shares.entry(share.node).or_default().push(share.clone());
                } else {
                    placed_nodes.insert(share.node);
                }
            }
            for (name, count) in &component.alternatives[placed.alternative as usize].licences {
                *taken.licences.entry(name).or_default() += count;
            }
            components[number] = placed;
        }
        Some(Placement { components })
    }

    /// Deals the nodes out among the components so that each has enough, if there is a way and each asks for a number
    /// of nodes.
    fn deal(&self, demand: &Demand, start: Timestamp, choice: Option<u32>) -> Option<Vec<BTreeSet<NodeId>>> {
        let window = Window::of(start, longest(demand));
        let nobody = BTreeSet::new();
        let wanted = |component: &ComponentDemand| {
            let number = choice.or((component.alternatives.len() == 1).then_some(0))?;
            let alternative = component.alternatives.get(number as usize)?;
            let each = EachNode::of(alternative, self.default_memory_per_core_bytes)?;
            let serving = |node: &&MachineNode| node.serves(window, component.reservation.as_deref());
            let nodes = self.machine.nodes().iter().filter(serving);
            let free: Vec<FreeNode> = nodes.filter_map(|node| node.free_in(window, self.now, false)).collect();
            let scope = Scope {
                queue_nodes: self.queue_nodes(component),
                taken_nodes: &nobody,
                default_memory_per_core_bytes: self.default_memory_per_core_bytes,
                order: &[],
            };
            Some(each.wanted(free.iter(), &scope)).filter(|wanted| wanted.able.len() >= wanted.nodes)
        };
        let wanted: Option<Vec<Wanted>> = demand.components.iter().map(wanted).collect();
        place::deal(&wanted?)
    }

    /// The components in the order in which they are placed: those that fewest nodes can serve first, so that the
    /// others leave them their nodes.
    pub fn components_in_order(&self, demand: &Demand) -> Vec<usize> {
        let mut order: Vec<usize> = (0..demand.components.len()).collect();
        if order.len() > 1 {
            order.sort_by_cached_key(|number| self.nodes_of_kind(&demand.components[*number]));
        }
        order
    }

    fn nodes_of_kind(&self, component: &ComponentDemand) -> usize {
        let queue_nodes = self.queue_nodes(component);
        let serves = |node: &&MachineNode| {
            node.is_for(component.reservation.as_deref())
                && component.alternatives.iter().any(|alternative| serves_kind(node, queue_nodes, alternative))
        };
        self.machine.nodes().iter().filter(serves).count()
    }

    fn component(
        &self,
        (number, component): (usize, &ComponentDemand),
        start: Timestamp,
        choice: Option<u32>,
        taken: &Taken,
    ) -> Option<ComponentPlacement> {
        let alternatives = &component.alternatives;
        if let Some(number) = choice.or((alternatives.len() == 1).then_some(0)) {
            return self.alternative(component, number, alternatives.get(number as usize)?, start, taken);
        }
        let mut ordered: Vec<(u32, &Alternative)> = (0..).zip(alternatives.iter()).collect();
        ordered.retain(|(way, _)| self.may_serve(number, *way));
        let is_late = |seconds| component.deadline.is_some_and(|deadline| Window::of(start, seconds).until > deadline);
        ordered.sort_by_key(|(_, alternative)| match component.deadline {
            None => (false, alternative.walltime_seconds.unwrap_or(u64::MAX)),
            Some(_) => (is_late(alternative.walltime_seconds), 0),
        });
        ordered
            .into_iter()
            .find_map(|(number, alternative)| self.alternative(component, number, alternative, start, taken))
    }

    /// Whether a component may be served in a way.
    fn may_serve(&self, component: usize, way: u32) -> bool {
        self.ways.and_then(|ways| ways.get(component)?.get(way as usize)).is_none_or(|may| *may)
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
            order: &self.machine.order_for(alternative),
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

    /// The nodes with something for the alternative throughout a window, as many as it takes to serve it.
    fn candidates(
        &self,
        component: &ComponentDemand,
        alternative: &Alternative,
        window: Window,
        taken: &Taken,
    ) -> Vec<FreeNode<'s>> {
        let reservation = component.reservation.as_deref();
        let serves = |node: &&MachineNode| node.serves(window, reservation) && !taken.nodes.contains(&node.id);
        let nodes = self.machine.nodes();
        let Some(enough) = Enough::of(alternative, self.default_memory_per_core_bytes) else {
            // A request that compares all nodes includes those without free cores.
            let whole_sockets = asks_for_sockets(alternative);
            let free = |node: &'s MachineNode| {
                taken.left_of(node.free_in(window, self.now, whole_sockets).unwrap_or_else(|| node.full_in(window)))
            };
            return nodes.iter().filter(serves).map(free).collect();
        };
        let queue_nodes = self.queue_nodes(component);
        let free = |node: &'s MachineNode| {
            let free = taken.left_of(node.free_in(window, self.now, false)?);
            let is_wanted = serves_kind(node, queue_nodes, alternative) && fits_sharing(&free, alternative);
            is_wanted.then_some(free)
        };
        let least_cores = enough.least_cores();
        if let Some(nodes) = self.machine.by_weight() {
            let known = nodes.filter(|(at, _)| self.may_have_room(*at, window.from, least_cores));
            let mut first = first_enough(enough, known.map(|(_, node)| node).filter(serves).filter_map(free));
            first.sort_unstable_by_key(|free| free.node);
            return first;
        }
        match self.known.filter(|(at, _)| *at == window.from).map(|(_, known)| known) {
            None => first_enough(enough, nodes.iter().filter(serves).filter_map(free)),
            Some(Known::Cores(cores)) => {
                let known = nodes.iter().zip(cores).filter(|(_, cores)| **cores >= least_cores);
                first_enough(enough, known.map(|(node, _)| node).filter(serves).filter_map(free))
            }
            Some(Known::Looks(looks)) => {
                let known = looks.iter().filter(|(_, look)| look.room > 0).map(|(at, _)| &nodes[*at as usize]);
                first_enough(enough, known.filter(serves).filter_map(free))
            }
        }
    }

    /// Whether a node may have room for this many cores at a moment, as far as that is known.
    fn may_have_room(&self, at: u32, moment: Timestamp, least_cores: u32) -> bool {
        match self.known.filter(|(known_at, _)| *known_at == moment).map(|(_, known)| known) {
            None => true,
            Some(Known::Cores(cores)) => cores.get(at as usize).is_none_or(|cores| *cores >= least_cores),
            Some(Known::Looks(looks)) => looks.get(&at).is_some_and(|look| look.room > 0),
        }
    }

    fn queue_nodes(&self, component: &ComponentDemand) -> &'s [String] {
        self.queues.get(&component.queue).map_or(&[][..], |queue| &queue.nodes)
    }

    /// The first moment from `from` on, and before `bound`, at which the demand fits, and where. For a job with one
    /// component it takes the best alternative, the first of equal ones; several components start together at the first
    /// moment at which all fit.
    /// A job that wants nodes in few groups starts in more once it has waited long enough since it could have started so.
    pub fn earliest(&self, class: &Class, from: Timestamp, bound: Timestamp) -> Option<Found> {
        let found = self.earliest_start(&class.demand, from, bound);
        let Some(patience) = &class.patience else { return found };
        let Some(possible) = self.earliest_start(&patience.demand, from, bound) else { return found };
        let until = patience.until(possible.start);
        if found.as_ref().is_some_and(|found| found.start <= until) {
            return found;
        }
        self.earliest_start(&patience.demand, until, bound).or(found)
    }

    /// The same for a demand that has no class.
    pub fn earliest_start(&self, demand: &Demand, from: Timestamp, bound: Timestamp) -> Option<Found> {
        match &demand.components[..] {
            [component] if component.alternatives.len() > 1 => {
                let mut best: Option<((bool, Timestamp), Found)> = None;
                let ways = (0..).zip(component.alternatives.iter());
                for (number, alternative) in ways.filter(|(number, _)| self.may_serve(0, *number)) {
                    let Some(found) = self.earliest_of(demand, Some(number), from, bound) else { continue };
                    let end = Window::of(found.start, alternative.walltime_seconds).until;
                    let order = order_of_ways(found.start, end, component.deadline);
                    if best.as_ref().is_none_or(|(best, _)| order < *best) {
                        best = Some((order, found));
                    }
                }
                best.map(|(_, found)| found)
            }
            _ => self.earliest_of(demand, None, from, bound),
        }
    }

    /// The first moment from now on at which the demand fits in any way.
    pub fn first_start(&self, demand: &Demand) -> Option<Timestamp> {
        let starts = |choice| self.earliest_of(demand, choice, self.now, Timestamp::MAX).map(|found| found.start);
        match &demand.components[..] {
            [component] if component.alternatives.len() > 1 => {
                (0..).zip(component.alternatives.iter()).filter_map(|(number, _)| starts(Some(number))).min()
            }
            _ => starts(None),
        }
    }

    fn earliest_of(&self, demand: &Demand, choice: Option<u32>, from: Timestamp, bound: Timestamp) -> Option<Found> {
        if let Some((cores, micros)) = self.as_pool(demand) {
            let line = &self.machine.nodes()[0].line;
            let start = line.earliest_cores(cores, micros, from, bound, Timestamp::MAX)?;
            // It cannot be earlier, but another run may have the node exclusively.
            if let Some(placement) = self.with_choice(demand, start, choice) {
                return Some(Found { start, placement });
            }
        }
        if self.only_grows && self.is_monotone(demand) {
            let at_once = || self.with_choice(demand, from, choice).map(|placement| Found { start: from, placement });
            let later = || self.first_of_growing(demand, choice, from, bound);
            return if from < bound { at_once().or_else(later) } else { None };
        }
        if let Some(plain) = Plain::of(self, demand, choice)
            && let Some(mut sweep) = Sweep::start(self, &plain, from)
        {
            return self.go_on(demand, choice, &plain, &mut sweep, bound);
        }
        if let Some(plains) = Plain::of_all(self, demand)
            && let Some(sweeps) = plains.iter().map(|plain| Sweep::start(self, plain, from)).collect()
        {
            return self.earliest_together(demand, &plains, sweeps, bound);
        }
        let starts = std::iter::once(from).filter(|from| *from < bound).chain(self.openings(demand, from, bound));
        starts
            .into_iter()
            .find_map(|start| self.with_choice(demand, start, choice).map(|placement| Found { start, placement }))
    }

    /// The most cores that each node can have at a moment, if that is known.
    fn known_cores_at(&self, moment: Timestamp) -> Option<&'s [u32]> {
        match self.known {
            Some((at, Known::Cores(cores))) if at == moment => Some(cores),
            _ => None,
        }
    }

    /// Whether a demand that fits also fits with more free.
    pub fn is_monotone(&self, demand: &Demand) -> bool {
        // With more free, an earlier component may take the only node of a later one.
        let [component] = &demand.components[..] else { return false };
        let mut alternatives = component.alternatives.iter();
        component.reservation.is_none()
            && alternatives.all(|alternative| Enough::of(alternative, self.default_memory_per_core_bytes).is_some())
    }

    /// The first moment at which it fits if more becomes free with every run that ends, and only then.
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
                // Runs that end together count together.
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
        let is_asked =
            |node: &&MachineNode| demand.components.iter().any(|one| node.is_for(one.reservation.as_deref()));
        let nodes = self.machine.nodes().iter().filter(|node| node.is_available).filter(is_asked);
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

/// Nodes, up to those with which a plain request has enough.
fn first_enough<'s>(mut enough: Enough, free: impl Iterator<Item = FreeNode<'s>>) -> Vec<FreeNode<'s>> {
    let mut first = Vec::new();
    for node in free {
        let room = enough.room(&node);
        if room == 0 {
            continue;
        }
        first.push(node);
        if enough.add_room(room) {
            break;
        }
    }
    first
}
