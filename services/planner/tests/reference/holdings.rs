//! A list of what is held when, and what is left over a window of time.

use super::World;
use muster_planner::{
    free::FreeNode,
    model::{ComponentDemand, Demand},
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    resources::{ComponentPlacement, IndexSet, NodeShare, NodeSpec, Placement},
};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

/// From `start` on and before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub start: Timestamp,
    pub end: Timestamp,
}

impl Window {
    /// From a start for this long, or for ever.
    pub fn of(start: Timestamp, walltime_seconds: Option<u64>) -> Self {
        let lasts = walltime_seconds.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX));
        let end = lasts.map_or(Timestamp::MAX, |seconds| start.plus_seconds(seconds).min(Timestamp::MAX));
        Self { start, end }
    }

    pub fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    pub fn contains(self, moment: Timestamp) -> bool {
        self.start <= moment && moment < self.end
    }
}

/// What a component holds.
#[derive(Clone, Debug)]
pub struct Holding {
    pub job: JobId,
    pub window: Window,
    pub placed: ComponentPlacement,
    pub licences: BTreeMap<String, u32>,
    /// Whether it runs, or starts in this plan: then the very cores and GPUs are known, and not only their number.
    pub has_begun: bool,
}

impl Holding {
    pub fn new(
        job: JobId,
        demand: &ComponentDemand,
        placed: ComponentPlacement,
        window: Window,
        has_begun: bool,
    ) -> Self {
        let licences = demand.alternatives[placed.alternative as usize].licences.clone();
        Self { job, window, placed, licences, has_begun }
    }

    fn share_of(&self, node: NodeId) -> impl Iterator<Item = &NodeShare> {
        self.placed.shares.iter().filter(move |share| share.node == node)
    }
}

/// The resources of a node, as numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amounts {
    pub cores: i64,
    pub memory_bytes: i64,
    pub gpus: BTreeMap<String, i64>,
}

impl Amounts {
    fn of_node(spec: &NodeSpec) -> Self {
        let mut gpus = BTreeMap::new();
        for model in &spec.gpus {
            *gpus.entry(model.clone()).or_default() += 1;
        }
        Self { cores: i64::from(spec.cores), memory_bytes: spec.memory_bytes as i64, gpus }
    }

    fn take(&mut self, spec: &NodeSpec, share: &NodeShare) {
        self.cores -= share.cores.len() as i64;
        self.memory_bytes -= share.memory_bytes as i64;
        for gpu in share.gpus.iter() {
            *self.gpus.get_mut(&spec.gpus[gpu as usize]).expect("the model of the GPU") -= 1;
        }
    }

    fn min(mut self, other: &Self) -> Self {
        self.cores = self.cores.min(other.cores);
        self.memory_bytes = self.memory_bytes.min(other.memory_bytes);
        for (model, count) in &mut self.gpus {
            *count = (*count).min(other.gpus[model]);
        }
        self
    }

    pub fn is_any_negative(&self) -> bool {
        self.cores < 0 || self.memory_bytes < 0 || self.gpus.values().any(|count| *count < 0)
    }
}

/// Everything held from now on.
#[derive(Clone, Debug)]
pub struct Holdings<'w> {
    pub world: &'w World,
    pub now: Timestamp,
    pub list: Vec<Holding>,
    /// The shares of a job's components while others of it are placed that may share their nodes.
    pub own: Vec<NodeShare>,
}

impl<'w> Holdings<'w> {
    pub fn new(world: &'w World, now: Timestamp) -> Self {
        Self { world, now, list: Vec::new(), own: Vec::new() }
    }

    pub fn add(&mut self, holding: Holding) {
        self.list.push(holding);
    }

    /// A job holds a placement from a start on, with all components until the last of them must end.
    pub fn hold(&mut self, job: JobId, demand: &Demand, placement: &Placement, start: Timestamp, has_begun: bool) {
        let components = || demand.components.iter().zip(&placement.components);
        let ends = components().map(|(component, placed)| {
            Window::of(start, component.alternatives[placed.alternative as usize].walltime_seconds).end
        });
        let window = Window { start, end: ends.max().unwrap_or(start) };
        for (component, placed) in components() {
            self.add(Holding::new(job, component, placed.clone(), window, has_begun));
        }
    }

    /// Forgets what a job holds.
    pub fn remove(&mut self, job: JobId) {
        self.list.retain(|holding| holding.job != job);
    }

    /// The beginning of a window, and the moments in it at which something new is held: between them nothing decreases.
    pub fn moments(&self, window: Window) -> BTreeSet<Timestamp> {
        let starts = self.list.iter().map(|holding| holding.window.start);
        starts.filter(|start| window.contains(*start)).chain([window.start]).collect()
    }

    /// The free amounts of a node at a moment.
    pub fn left_at(&self, node: NodeId, moment: Timestamp) -> Amounts {
        let spec = &self.world.nodes[&node].spec;
        let mut left = Amounts::of_node(spec);
        for holding in self.list.iter().filter(|holding| holding.window.contains(moment)) {
            holding.share_of(node).for_each(|share| left.take(spec, share));
        }
        left
    }

    /// Whether the free amounts change at a moment. Who holds them does not matter.
    pub fn changes_at(&self, moment: Timestamp) -> bool {
        let before = moment.plus_micros(-1);
        let of_node = |node: &NodeId| {
            let holders = |moment| {
                let held = self.list.iter().filter(|holding| holding.window.contains(moment));
                let shares: Vec<&NodeShare> = held.flat_map(|holding| holding.share_of(*node)).collect();
                (shares.len(), shares.iter().filter(|share| share.exclusive).count())
            };
            self.left_at(*node, before) != self.left_at(*node, moment) || holders(before) != holders(moment)
        };
        let of_licence = |name: &String| self.licences_held_at(name, before) != self.licences_held_at(name, moment);
        self.world.nodes.keys().any(of_node) || self.world.licences.keys().any(of_licence)
    }

    /// The least free amounts of a node over a window.
    fn least_left(&self, node: NodeId, window: Window) -> Amounts {
        let full = Amounts::of_node(&self.world.nodes[&node].spec);
        self.moments(window).into_iter().fold(full, |least, moment| least.min(&self.left_at(node, moment)))
    }

    /// A resource that is held more often than it exists, or a node that is shared although a job wants it exclusively.
    pub fn conflict(&self) -> Option<String> {
        let always = Window { start: Timestamp::MIN, end: Timestamp::MAX };
        self.moments(always).into_iter().find_map(|moment| {
            let of_licence = |(name, total): (&String, &u32)| {
                let held = self.licences_held_at(name, moment);
                (held > u64::from(*total)).then(|| format!("{held} of {total} {name} at {moment}"))
            };
            let of_node = |node: &NodeId| self.conflict_of_node(*node, moment);
            self.world.licences.iter().find_map(of_licence).or_else(|| self.world.nodes.keys().find_map(of_node))
        })
    }

    fn conflict_of_node(&self, node: NodeId, moment: Timestamp) -> Option<String> {
        let held: Vec<&Holding> = self.list.iter().filter(|holding| holding.window.contains(moment)).collect();
        let shares: Vec<&NodeShare> = held.iter().flat_map(|holding| holding.share_of(node)).collect();
        let left = self.left_at(node, moment);
        let is_shared = shares.len() > 1 && shares.iter().any(|share| share.exclusive);
        let is_taken_twice = |begun: &[&Holding]| {
            let shares: Vec<_> = begun.iter().flat_map(|holding| holding.share_of(node)).collect();
            shares.iter().enumerate().any(|(at, one)| {
                let others = &shares[at + 1..];
                others.iter().any(|other| {
                    !one.cores.intersection(&other.cores).is_empty() || !one.gpus.intersection(&other.gpus).is_empty()
                })
            })
        };
        let begun: Vec<&Holding> = held.iter().filter(|holding| holding.has_begun).copied().collect();
        let conflict = left.is_any_negative() || is_shared || is_taken_twice(&begun);
        conflict.then(|| {
            let jobs: Vec<String> = held.iter().map(|holding| holding.job.to_string()).collect();
            format!("node {} at {moment}: {left:?} left by jobs {}", node.0, jobs.join(", "))
        })
    }

    /// Whether every holding of a job is on nodes that serve it all the time, and without conflict.
    pub fn are_open(&self, job: JobId, demand: &Demand) -> bool {
        let own = self.list.iter().filter(|holding| holding.job == job);
        own.zip(&demand.components).all(|(holding, component)| {
            let nodes = holding.placed.shares.iter().map(|share| share.node);
            nodes.into_iter().all(|node| self.is_open(node, component.reservation.as_deref(), holding.window))
        })
    }

    /// Whether no other job holds the same resources at the same time.
    pub fn is_alone_with_own(&self, job: JobId) -> bool {
        self.list.iter().filter(|holding| holding.job == job).all(|own| {
            // It may begin a little late.
            let half = own.window.end.micros_since(own.window.start) / 2;
            let from = own.window.start.plus_micros(half.min(60_000_000));
            let mut moments = self.moments(own.window).into_iter().map(|moment| moment.max(from));
            moments.all(|moment| {
                let mut nodes = own.placed.shares.iter().map(|share| share.node);
                let mut licences = own.licences.keys();
                nodes.all(|node| self.conflict_of_node(node, moment).is_none())
                    && licences.all(|name| {
                        let total = self.world.licences.get(name).copied().unwrap_or(0);
                        self.licences_held_at(name, moment) <= u64::from(total)
                    })
            })
        })
    }

    /// A promised placement made of cores and GPUs that are free at this moment: the same ones, or as many others.
    pub fn made_of_what_is_free(&self, promised: &Placement) -> Option<Placement> {
        let now = Window { start: self.now, end: self.now.plus_micros(1) };
        let mut placement = promised.clone();
        // The shares of earlier components on the same nodes.
        let mut own: Vec<NodeShare> = Vec::new();
        for share in placement.components.iter_mut().flat_map(|component| &mut component.shares) {
            let spec = &self.world.nodes.get(&share.node)?.spec;
            let mut left = self.left_at(share.node, self.now);
            let (mut cores, mut gpus) = self.actually_free(share.node, now);
            cores = cores.smallest(u64::try_from(left.cores).unwrap_or(0));
            for other in own.iter().filter(|other| other.node == share.node) {
                cores = cores.difference(&other.cores);
                gpus = gpus.difference(&other.gpus);
                left.take(spec, other);
            }
            let is_shared = self.list.iter().filter(|holding| holding.window.contains(self.now));
            let mut others = is_shared.flat_map(|holding| holding.share_of(share.node)).peekable();
            if share.exclusive && others.peek().is_some() || others.any(|other| other.exclusive) {
                return None;
            }
            if !cores.contains_all(&share.cores) {
                share.cores =
                    Some(cores.smallest(share.cores.len())).filter(|found| found.len() == share.cores.len())?;
            }
            let mut left_gpus = gpus;
            let mut chosen = IndexSet::new();
            for wanted in share.gpus.iter() {
                let is_like = |gpu: &u32| spec.gpus[*gpu as usize] == spec.gpus[wanted as usize];
                let gpu = if left_gpus.contains(wanted) { wanted } else { left_gpus.iter().find(is_like)? };
                left_gpus.remove(gpu);
                chosen.insert(gpu);
            }
            share.gpus = chosen;
            if left.memory_bytes < share.memory_bytes as i64 {
                return None;
            }
            own.push(share.clone());
        }
        Some(placement)
    }

    /// The most of a licence that is held at a moment.
    pub fn licences_held_at(&self, name: &str, moment: Timestamp) -> u64 {
        let held = self.list.iter().filter(|holding| holding.window.contains(moment));
        held.filter_map(|holding| holding.licences.get(name)).map(|count| u64::from(*count)).sum()
    }

    /// The fewest of a licence that are free over a window.
    fn free_licences(&self, name: &str, total: u32, window: Window) -> u32 {
        let most = self.moments(window).into_iter().map(|moment| self.licences_held_at(name, moment)).max();
        u64::from(total).saturating_sub(most.unwrap_or(0)) as u32
    }

    /// The licences that are free over a window.
    pub fn licences(&self, window: Window) -> Vec<(&'w str, u32)> {
        let all = self.world.licences.iter();
        all.map(|(name, total)| (name.as_str(), self.free_licences(name, *total, window))).collect()
    }

    /// The free part of a node over a window, and whether all its cores are free; `None` if it cannot be
    /// used then at all.
    pub fn free_node(&self, node: NodeId, reservation: Option<&str>, window: Window) -> Option<(FreeNode<'w>, bool)> {
        if !self.is_open(node, reservation, window) {
            return None;
        }
        let spec: &'w NodeSpec = &self.world.nodes[&node].spec;
        let least = self.least_left(node, window);
        let shares = || {
            let overlapping = self.list.iter().filter(move |holding| holding.window.overlaps(window));
            overlapping.flat_map(move |holding| holding.share_of(node))
        };
        let (cores, gpus) = self.actually_free(node, window);
        let count = |left: i64| u64::try_from(left).unwrap_or(0);
        let mut free_gpus = IndexSet::new();
        for (model, left) in &least.gpus {
            let of_model: IndexSet = numbers(gpus.iter().filter(|gpu| spec.gpus[*gpu as usize] == *model));
            free_gpus = free_gpus.union(&of_model.smallest(count(*left)));
        }
        let free = FreeNode {
            node,
            spec,
            cores: Cow::Owned(cores.smallest(count(least.cores))),
            gpus: Cow::Owned(free_gpus),
            memory_bytes: count(least.memory_bytes),
            idle: shares().next().is_none(),
            exclusive: shares().any(|share| share.exclusive),
        };
        Some((free, least.cores == i64::from(spec.cores)))
    }

    /// Cores and GPUs that may be taken: if the window begins now, those without a run, otherwise any.
    fn actually_free(&self, node: NodeId, window: Window) -> (IndexSet, IndexSet) {
        let spec = &self.world.nodes[&node].spec;
        let mut cores = IndexSet::first_n(spec.cores);
        let mut gpus = IndexSet::first_n(spec.gpus.len() as u32);
        if window.start <= self.now {
            for share in self.list.iter().filter(|holding| holding.has_begun).flat_map(|held| held.share_of(node)) {
                cores = cores.difference(&share.cores);
                gpus = gpus.difference(&share.gpus);
            }
        }
        (cores, gpus)
    }

    /// Whether jobs that name this reservation, or none, may be on the node for all of the window.
    fn is_open(&self, node: NodeId, reservation: Option<&str>, window: Window) -> bool {
        let Some(found) = self.world.nodes.get(&node) else { return false };
        let closed =
            found.closures.iter().any(|closure| window.overlaps(Window { start: closure.from, end: closure.until }));
        let is_kept = || {
            let others = self.world.reservations.values().filter(|other| other.nodes.contains(&node));
            others.into_iter().any(|other| window.overlaps(Window { start: other.start, end: other.end }))
        };
        let is_inside = |name: &str| {
            self.world
                .reservations
                .get(name)
                .is_some_and(|own| own.nodes.contains(&node) && own.start <= window.start && window.end <= own.end)
        };
        found.is_available && !closed && reservation.map_or_else(|| !is_kept(), is_inside)
    }
}

/// A set of these numbers.
pub fn numbers(all: impl Iterator<Item = u32>) -> IndexSet {
    let mut set = IndexSet::new();
    all.for_each(|number| {
        set.insert(number);
    });
    set
}
