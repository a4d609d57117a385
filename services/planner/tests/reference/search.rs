//! Where and when a demand fits: every moment is tried, one after the other.

use super::{Holding, Holdings, Window};
use muster_domain::requests::minimum;
use muster_planner::{
    free::{Free, Undo},
    model::{ComponentDemand, Demand},
    place::{EachNode, Scope, Wanted, deal, of_others, place_alternative},
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    cluster::ClusterSettings,
    resources::{Alternative, ComponentPlacement, IndexSet, Level, NodeShare, NodeSpec, Placement, Sharing},
};
use std::{borrow::Cow, cmp::Reverse, collections::BTreeSet};

/// A place and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub start: Timestamp,
    pub placement: Placement,
}

impl Holdings<'_> {
    /// The moments from now on at which a demand may fit for the first time: whenever the free amounts change. A
    /// request for all nodes can fit once others have nodes exclusively.
    pub fn possible_starts(&self) -> BTreeSet<Timestamp> {
        let held = self.list.iter().flat_map(|holding| [holding.window.start, holding.window.end]);
        let held = held.filter(|moment| self.changes_at(*moment));
        // A node that takes no jobs opens nothing.
        let takes_jobs = |id: &NodeId| self.world.nodes.get(id).is_some_and(|node| node.is_available);
        let nodes = self.world.nodes.iter().filter(|(id, _)| takes_jobs(id));
        let closures = nodes.flat_map(|(_, node)| &node.closures).map(|closure| closure.until);
        let reservations = self.world.reservations.values().filter(|kept| kept.nodes.iter().any(takes_jobs));
        let reservations = reservations.flat_map(|kept| [kept.start, kept.end]);
        let all = held.chain(closures).chain(reservations);
        all.filter(|moment| self.now < *moment && *moment < Timestamp::MAX).chain([self.now]).collect()
    }

    /// The earliest start of a job from now on; `None` if no expected end lets it fit.
    ///
    /// A job with one component takes the alternative that ends first.
    pub fn earliest(&self, job: JobId, demand: &Demand) -> Option<Found> {
        self.earliest_before(job, demand, Timestamp::MAX)
    }

    /// The same among the starts before a moment.
    pub fn earliest_before(&self, job: JobId, demand: &Demand, bound: Timestamp) -> Option<Found> {
        let first_of = |only: Option<u32>| {
            let mut starts = self.possible_starts().into_iter().filter(|start| *start < bound);
            starts
                .find_map(|start| self.place_only(job, demand, start, only).map(|placement| Found { start, placement }))
        };
        let [component] = &demand.components[..] else { return first_of(None) };
        let of_each = (0..component.alternatives.len() as u32).filter_map(|number| {
            let found = first_of(Some(number))?;
            let end = Window::of(found.start, component.alternatives[number as usize].walltime_seconds).end;
            Some((end, number, found))
        });
        of_each.min_by_key(|(end, number, _)| (*end, *number)).map(|(_, _, found)| found)
    }

    /// The placement of a job that can start now, if that is its earliest start.
    pub fn place_now(&self, job: JobId, demand: &Demand) -> Option<Placement> {
        self.earliest(job, demand).filter(|found| found.start == self.now).map(|found| found.placement)
    }

    /// Places all components at a time, each with the shortest alternative that fits.
    fn place_only(&self, job: JobId, demand: &Demand, start: Timestamp, only: Option<u32>) -> Option<Placement> {
        if let [component] = &demand.components[..] {
            let placed = self.place_component(component, start, None, only, &BTreeSet::new())?;
            return Some(Placement { components: vec![placed] });
        }
        self.place_several(job, demand, start, only, &[])
            .or_else(|| {
                // Assigning nodes so that each has enough may work where first fit does not.
                let window = Window::of(start, longest_walltime(demand));
                let nobody = BTreeSet::new();
                let wanted = |component: &ComponentDemand| {
                    let number = only.or((component.alternatives.len() == 1).then_some(0))?;
                    let alternative = component.alternatives.get(number as usize)?;
                    let each = EachNode::of(alternative, self.world.default_memory_per_core_bytes)?;
                    let nodes = self.world.nodes.keys();
                    let free = nodes.filter_map(|node| self.free_node(*node, component.reservation.as_deref(), window));
                    let free: Vec<_> = free.map(|(free, _)| free).collect();
                    Some(each.wanted(free.iter(), &self.scope(component, &nobody)?))
                };
                let wanted: Option<Vec<Wanted>> = demand.components.iter().map(wanted).collect();
                self.place_several(job, demand, start, only, &deal(&wanted?)?)
            })
            .or_else(|| {
                let may_share = self.world.shares_nodes && can_share(demand);
                if may_share { self.place_beside_each_other(job, demand, start, only) } else { None }
            })
    }

    /// Places several components, each in what earlier ones leave, even on their nodes. Components that the fewest
    /// nodes can serve come first, among equal ones those that need most of a node.
    fn place_beside_each_other(
        &self,
        job: JobId,
        demand: &Demand,
        start: Timestamp,
        only: Option<u32>,
    ) -> Option<Placement> {
        let window = Window::of(start, longest_walltime(demand));
        let settings = ClusterSettings {
            default_memory_per_core_bytes: self.world.default_memory_per_core_bytes,
            ..ClusterSettings::default()
        };
        let need = |component: &ComponentDemand| {
            let requests = component.alternatives[0].requests.iter();
            let of_node = requests.map(|request| {
                let least = minimum(request, &settings);
                let is_whole = request.sharing != Sharing::Shared;
                let [cores, gpus, memory] =
                    [least.cores, least.gpus, least.memory_bytes].map(|amount| amount.div_ceil(least.nodes));
                (is_whole, cores, gpus, memory)
            });
            of_node.max()
        };
        let mut order: Vec<usize> = (0..demand.components.len()).collect();
        order.sort_by_key(|number| {
            let component = &demand.components[*number];
            (self.nodes_of_kind(component), Reverse(need(component)))
        });
        let mut with_job = self.clone();
        let mut components = vec![ComponentPlacement::default(); demand.components.len()];
        for number in order {
            let component = &demand.components[number];
            let own: Vec<NodeShare> = components.iter().flat_map(|placed| placed.shares.clone()).collect();
            let whole: BTreeSet<NodeId> = own.iter().filter(|share| share.exclusive).map(|share| share.node).collect();
            with_job.own = own;
            let placed = with_job.place_component(component, start, Some(window), only, &whole)?;
            // Its shares are known; its licences are held like all others.
            let of_licences = ComponentPlacement { shares: Vec::new(), ..placed.clone() };
            with_job.add(Holding::new(job, component, of_licences, window, false));
            components[number] = placed;
        }
        Some(Placement { components })
    }

    /// Several components hold their resources until the last of them is over, whichever alternatives are taken. None
    /// is placed on nodes that were assigned to others.
    fn place_several(
        &self,
        job: JobId,
        demand: &Demand,
        start: Timestamp,
        only: Option<u32>,
        dealt: &[BTreeSet<NodeId>],
    ) -> Option<Placement> {
        let window = Window::of(start, longest_walltime(demand));
        let mut with_job = self.clone();
        let mut taken = BTreeSet::new();
        // Components that the fewest nodes can serve are placed first.
        let mut order: Vec<usize> = (0..demand.components.len()).collect();
        order.sort_by_key(|number| self.nodes_of_kind(&demand.components[*number]));
        let mut components = vec![ComponentPlacement::default(); demand.components.len()];
        for number in order {
            let component = &demand.components[number];
            let barred = &taken | &of_others(dealt, number);
            let placed = with_job.place_component(component, start, Some(window), only, &barred)?;
            taken.extend(placed.shares.iter().map(|share| share.node));
            with_job.add(Holding::new(job, component, placed.clone(), window, false));
            components[number] = placed;
        }
        Some(Placement { components })
    }

    fn scope<'s>(&'s self, component: &ComponentDemand, taken_nodes: &'s BTreeSet<NodeId>) -> Option<Scope<'s>> {
        let queue = self.world.queues.get(&*component.queue)?;
        let default_memory_per_core_bytes = self.world.default_memory_per_core_bytes;
        Some(Scope { queue_nodes: &queue.nodes, taken_nodes, default_memory_per_core_bytes, order: &[] })
    }

    /// The number of nodes that match some alternative of a component.
    fn nodes_of_kind(&self, component: &ComponentDemand) -> usize {
        let queue_nodes = self.world.queues.get(&*component.queue).map_or(&[][..], |queue| &queue.nodes);
        let serves = |spec: &NodeSpec| {
            (queue_nodes.is_empty() || queue_nodes.contains(&spec.name))
                && component.alternatives.iter().any(|alternative| {
                    alternative.requests.iter().all(|request| muster_domain::requests::node_serves(spec, request))
                })
        };
        self.world.nodes.values().filter(|node| serves(&node.spec)).count()
    }

    fn place_component(
        &self,
        component: &ComponentDemand,
        start: Timestamp,
        longest: Option<Window>,
        only: Option<u32>,
        taken_nodes: &BTreeSet<NodeId>,
    ) -> Option<ComponentPlacement> {
        let mut alternatives: Vec<_> = (0..).zip(component.alternatives.iter()).collect();
        alternatives.retain(|(number, _)| only.is_none_or(|only| only == *number));
        alternatives.sort_by_key(|(_, alternative)| alternative.walltime_seconds.unwrap_or(u64::MAX));
        alternatives.into_iter().find_map(|(number, alternative)| {
            let window = longest.unwrap_or(Window::of(start, alternative.walltime_seconds));
            self.place_alternative(component, window, number, alternative, taken_nodes)
        })
    }

    fn place_alternative(
        &self,
        component: &ComponentDemand,
        window: Window,
        number: u32,
        alternative: &Alternative,
        taken_nodes: &BTreeSet<NodeId>,
    ) -> Option<ComponentPlacement> {
        let scope = self.scope(component, taken_nodes)?;
        // It is unknown which cores are free later, so whole sockets are only certain on nodes with all cores free.
        let only_all_cores = window.start > self.now && wants_sockets(alternative);
        let nodes = self.world.nodes.keys().filter_map(|node| {
            let (mut free, has_all_cores) = self.free_node(*node, component.reservation.as_deref(), window)?;
            if only_all_cores && !has_all_cores {
                free.cores = Cow::Owned(IndexSet::new());
            }
            for share in self.own.iter().filter(|share| share.node == free.node) {
                free.cores = Cow::Owned(free.cores.difference(&share.cores));
                free.gpus = Cow::Owned(free.gpus.difference(&share.gpus));
                free.memory_bytes -= share.memory_bytes;
                free.idle = false;
            }
            Some(free)
        });
        let mut free = Free::new(nodes, self.licences(window));
        place_alternative(&mut free, &scope, number, alternative, &mut Undo::default())
    }
}

/// Whether two components can do with a part of a node in some alternative.
fn can_share(demand: &Demand) -> bool {
    let is_shared = |way: &Alternative| way.requests.iter().all(|request| request.sharing == Sharing::Shared);
    demand.components.iter().filter(|component| component.alternatives.iter().any(is_shared)).count() > 1
}

/// The longest walltime of the alternatives of all components.
fn longest_walltime(demand: &Demand) -> Option<u64> {
    let alternatives = demand.components.iter().flat_map(|component| component.alternatives.iter());
    alternatives.map(|alternative| alternative.walltime_seconds).collect::<Option<Vec<u64>>>()?.into_iter().max()
}

fn wants_sockets(alternative: &Alternative) -> bool {
    alternative.requests.iter().flat_map(|request| &request.path).any(|step| step.level == Level::Socket)
}
