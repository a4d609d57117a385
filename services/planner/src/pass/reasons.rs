//! Why a job does not start now.

use super::Cycle;
use crate::{
    class::Class,
    domains::asked,
    engine::Engine,
    free::{Free, FreeNode, Undo},
    machine::{MachineNode, Window},
    model::{ComponentDemand, Demand},
    place::{self, EachNode, Enough, Scope, Wanted},
    queue::{Entry, Place},
    search::{Spread, serves_kind},
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    event::WaitingJob,
    job::WaitReason,
    resources::{Alternative, IndexSet},
};
use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

/// The most names in a reason.
const NAMES_IN_REASON: usize = 5;

impl Engine {
    /// Finds the classes that can never be served, if the machine or the classes have changed.
    pub(super) fn judge_classes(&mut self) {
        let generation = self.machine.generation;
        let is_other_machine = std::mem::replace(&mut self.judged_generation, generation) != generation;
        for class in self.classes.take_unjudged(is_other_machine) {
            let judged = self.classes.get(class);
            // In the end it takes nodes in any groups.
            let reason = self.fate(judged.patience.as_ref().map_or(&judged.demand, |patience| &patience.demand));
            let ways = self.hopeless_ways(self.classes.get(class));
            self.classes.judge(class, reason, ways);
        }
    }

    /// Which ways of each component can never be served, if there is a choice.
    fn hopeless_ways(&self, class: &Class) -> Vec<Vec<bool>> {
        if !class.has_choice() {
            return Vec::new();
        }
        let is_hopeless = |component: &ComponentDemand, way: &Alternative| {
            let way = Alternative { groups: None, ..way.clone() };
            let only = ComponentDemand { alternatives: [way].into(), ..component.clone() };
            self.fate(&Demand { components: vec![only], sharing: None, fixed: None, guard_seconds: 0 }).is_some()
        };
        let of_component = |component: &ComponentDemand| {
            component.alternatives.iter().map(|way| is_hopeless(component, way)).collect()
        };
        class.demand.components.iter().map(of_component).collect()
    }

    pub(super) fn is_hopeless(&self, place: Place) -> bool {
        self.queue.class_at(place).is_some_and(|class| self.classes.is_hopeless(class))
    }

    /// Gives all waiting jobs that can never be served as things are their reason, wherever they are, if they do not
    /// have it yet.
    pub(super) fn tell_the_hopeless(&mut self, cycle: &mut Cycle) {
        if !self.classes.has_hopeless() || !self.tells_reasons {
            return;
        }
        let unaware = self.queue.unaware(&self.classes);
        let started: BTreeSet<u64> = cycle.plan.starts.iter().map(|start| start.job.number).collect();
        // A limit comes first, and that a fixed start is refused: somebody waits for the answer.
        let comes_first = |waiting: &&WaitingJob| match waiting.reason {
            WaitReason::Limit(_) => true,
            WaitReason::NeverFits(_) => self.queue.place_of(waiting.job).is_some_and(|place| self.is_fixed(place)),
            _ => false,
        };
        let told_before: BTreeSet<JobId> = cycle.plan.reasons.iter().filter(comes_first).map(|told| told.job).collect();
        let left_out = cycle.left_out;
        let reason = |entry: &Entry| {
            let reason = self.classes.get(entry.class).hopeless.as_ref()?;
            let is_passed_over = left_out.contains(&entry.id) || told_before.contains(&entry.id);
            (!is_passed_over && !started.contains(&entry.id.number)).then_some(reason)
        };
        // It matters more than their place in the order.
        let is_hopeless = |id: JobId| self.queue.place_of(id).and_then(|at| reason(self.queue.get(at)?)).is_some();
        cycle.plan.reasons.retain(|waiting| !is_hopeless(waiting.job));
        let news = |place: &Place| {
            let entry = self.queue.get(*place)?;
            Some(WaitingJob { job: entry.id, reason: reason(entry)?.clone() })
        };
        let mut told: Vec<WaitingJob> = unaware.iter().filter_map(news).collect();
        told.sort_unstable_by_key(|waiting| waiting.job);
        cycle.plan.reasons.append(&mut told);
    }

    /// Why a job can never be served, if that is so.
    pub(crate) fn hopeless(&self, place: Place) -> Option<WaitReason> {
        self.classes.get(self.queue.get(place)?.class).hopeless.clone()
    }

    fn fate(&self, demand: &Demand) -> Option<WaitReason> {
        if let Some(domain) = asked(demand) {
            return self.fate_inside(demand, domain);
        }
        if !self.fits_empty(demand, |_| true) {
            Some(WaitReason::NeverFits("the nodes and licences as configured cannot serve it".into()))
        } else if !self.fits_empty(demand, |node| node.is_available) {
            Some(WaitReason::NodesUnavailable(self.unavailable_nodes()))
        } else {
            None
        }
    }

    /// Whether a demand fits on some of the nodes when they are empty.
    fn fits_empty(&self, demand: &Demand, is_wanted: impl Fn(&MachineNode) -> bool) -> bool {
        if self.fits_first_empty(demand, &is_wanted) {
            return true;
        }
        let nodes = self.machine.nodes().iter().filter(|node| node.is_real() && is_wanted(node));
        let free = Free::new(nodes.map(|node| FreeNode::empty(node.id, &node.spec)), self.machine.licences());
        self.fits_in(demand, free)
    }

    /// Whether a plain demand fits on the first empty nodes, which is mostly so and quickly found.
    fn fits_first_empty(&self, demand: &Demand, is_wanted: impl Fn(&MachineNode) -> bool) -> bool {
        let [component] = &demand.components[..] else { return false };
        let [alternative] = &component.alternatives[..] else { return false };
        let default_memory_per_core_bytes = self.settings.default_memory_per_core_bytes;
        let Some(mut enough) = Enough::of(alternative, default_memory_per_core_bytes) else { return false };
        let queue_nodes = self.queues.get(&component.queue).map_or(&[][..], |queue| &queue.nodes);
        let mut nodes = self.machine.nodes().iter().filter(|node| node.is_real() && is_wanted(node));
        alternative.licences.is_empty()
            && nodes.any(|node| {
                let room = enough.room_of_counts(u64::from(node.spec.cores), node.spec.memory_bytes).unwrap_or(0);
                room > 0 && serves_kind(node, queue_nodes, alternative) && enough.add_room(room)
            })
    }

    pub(super) fn fits_in(&self, demand: &Demand, mut free: Free) -> bool {
        let mut undo = Undo::default();
        if self.fits_one_by_one(demand, &mut free, Spread::Apart(&[]), &mut undo) {
            return true;
        }
        if demand.components.len() < 2 {
            return false;
        }
        free.undo(std::mem::take(&mut undo));
        if let Some(dealt) = self.deal_of(demand, &free) {
            if self.fits_one_by_one(demand, &mut free, Spread::Apart(&dealt), &mut undo) {
                return true;
            }
            free.undo(undo);
        }
        self.search(Timestamp(0)).may_share(demand)
            && self.fits_one_by_one(demand, &mut free, Spread::Shared, &mut Undo::default())
    }

    /// As when a job starts: nodes dealt out so that each component has enough, if there is a way.
    fn deal_of(&self, demand: &Demand, free: &Free) -> Option<Vec<BTreeSet<NodeId>>> {
        let default_memory_per_core_bytes = self.settings.default_memory_per_core_bytes;
        let nobody = BTreeSet::new();
        let wanted = |component: &ComponentDemand| {
            let [alternative] = &component.alternatives[..] else { return None };
            let each = EachNode::of(alternative, default_memory_per_core_bytes)?;
            let queue_nodes = self.queues.get(&component.queue).map_or(&[][..], |queue| &queue.nodes);
            let scope = Scope { queue_nodes, taken_nodes: &nobody, default_memory_per_core_bytes, order: &[] };
            Some(each.wanted(free.nodes().iter(), &scope))
        };
        let wanted: Option<Vec<Wanted>> = demand.components.iter().map(wanted).collect();
        place::deal(&wanted?)
    }

    /// Whether the components fit one after the other.
    fn fits_one_by_one<'a>(&self, demand: &Demand, free: &mut Free<'a>, spread: Spread, undo: &mut Undo<'a>) -> bool {
        let mut taken_nodes: BTreeSet<NodeId> = BTreeSet::new();
        let order = self.search(Timestamp(0)).order_in(demand, spread);
        order.into_iter().all(|number| {
            let component = &demand.components[number];
            let queue_nodes = self.queues.get(&component.queue).map_or(&[][..], |queue| &queue.nodes);
            let default_memory_per_core_bytes = self.settings.default_memory_per_core_bytes;
            let barred = &taken_nodes | &spread.of_others(number);
            // As when it starts: the shortest that fits.
            let mut alternatives: Vec<_> = (0..).zip(component.alternatives.iter()).collect();
            alternatives.sort_by_key(|(_, alternative)| alternative.walltime_seconds.unwrap_or(u64::MAX));
            let placed = alternatives.into_iter().find_map(|(number, alternative)| {
                let order = &self.machine.order_for(alternative);
                let scope = Scope { queue_nodes, taken_nodes: &barred, default_memory_per_core_bytes, order };
                place::place_alternative(free, &scope, number, alternative, undo)
            });
            let shares = placed.iter().flat_map(|placed| &placed.shares);
            taken_nodes.extend(shares.filter(|share| !spread.lets_share(share)).map(|share| share.node));
            placed.is_some()
        })
    }

    /// Reports what a job lacks that would fit if nothing ran.
    pub(super) fn tell_shortage(&self, cycle: &mut Cycle, place: Place) {
        if !self.tells_reasons {
            return;
        }
        let Some(entry) = self.queue.get(place) else { return };
        let mut demand = self.classes.get(entry.class).demand.clone();
        if let Some(open) = self.open_ways(place) {
            // What would serve it only in a way that a limit shuts is not what it lacks.
            for (component, open) in Arc::make_mut(&mut demand).components.iter_mut().zip(open) {
                let ways = component.alternatives.iter().zip(&open).filter(|(_, is_open)| **is_open);
                component.alternatives = ways.map(|(way, _)| way.clone()).collect();
            }
        }
        let reason = self.no_room_inside(&demand, cycle.now);
        let reason = reason.unwrap_or_else(|| WaitReason::Resources(self.shortage(&demand, cycle.now).into()));
        cycle.tell(entry.id, reason);
    }

    /// The single resource of which more would help, if there is one.
    pub(crate) fn shortage(&self, demand: &Demand, now: Timestamp) -> &'static str {
        let window = Window { from: now, until: now.plus_micros(1) };
        let reservation = demand.components.first().and_then(|component| component.reservation.as_deref());
        let nodes = || {
            let serving = self.machine.nodes().iter().filter(move |node| node.serves(window, reservation));
            // A full node still has everything else to which more of one resource would add.
            serving.map(|node| node.free_in(window, now, false).unwrap_or_else(|| node.full_in(window)))
        };
        let licences = || self.machine.licences().map(|(name, _)| (name, self.machine.licence_in(name, window)));
        let helps = |change: fn(&mut FreeNode)| {
            let nodes = nodes().map(|mut node| {
                change(&mut node);
                node
            });
            self.fits_in(demand, Free::new(nodes, licences()))
        };
        let anywhere = |demand: &Demand| {
            let mut demand = demand.clone();
            for component in &mut demand.components {
                let ways = component.alternatives.iter();
                let way = |way: &Alternative| Alternative { contiguous: false, groups: None, ..way.clone() };
                component.alternatives = ways.map(way).collect();
            }
            demand
        };
        let has_layout = demand.components.iter().flat_map(|one| one.alternatives.iter()).any(Alternative::has_layout);
        if self.fits_in(demand, Free::new(nodes(), licences())) {
            "nodes for as long as it may run"
        } else if has_layout && self.fits_in(&anywhere(demand), Free::new(nodes(), licences())) {
            "nodes that lie together"
        } else if self.fits_in(demand, Free::new(nodes(), self.machine.licences())) {
            "licences"
        } else if helps(|node| node.cores = Cow::Owned(IndexSet::first_n(node.spec.cores))) {
            "cores"
        } else if helps(|node| node.memory_bytes = node.spec.memory_bytes) {
            "memory"
        } else if helps(|node| node.gpus = Cow::Owned(IndexSet::first_n(node.spec.gpus.len() as u32))) {
            "GPUs"
        } else {
            "nodes"
        }
    }

    /// The nodes that take no jobs, for people.
    fn unavailable_nodes(&self) -> String {
        let nodes = self.machine.nodes().iter().filter(|node| node.is_real() && !node.is_available);
        let names: Vec<&str> = nodes.map(|node| node.spec.name.as_str()).collect();
        let shown = names[..names.len().min(NAMES_IN_REASON)].join(",");
        match names.len().saturating_sub(NAMES_IN_REASON) {
            0 => shown,
            more => format!("{shown} and {more} more"),
        }
    }
}
