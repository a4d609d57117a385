//! Planning domains: nodes that consist of what runs hold for others (OAR-T-10).
//!
//! Each share that a run holds for a domain is a node of its own here, with the number of no real one, and as much free
//! as the share has. It serves the jobs of the domain until the expected end of the run, like the node of an advance
//! reservation. So all that plans jobs on nodes plans them in domains too. Placements that come from outside and go
//! there have the numbers of the real nodes.

use super::{
    Engine,
    inner_nodes::{FIRST_INNER, InnerNode},
};
use crate::{
    domains::{Opener, asked},
    machine::Holding,
    model::{ActiveRun, Demand, Slot},
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    resources::{IndexSet, NodeShare, NodeSpec, Placement},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

impl Engine {
    /// Sets which planning domain a job opens; `None` if it opens none, or is over.
    pub fn set_opener(&mut self, job: JobId, opener: Option<Opener>) {
        if self.domains.openers.get(&job) == opener.as_ref() {
            return;
        }
        self.close_domain(job);
        match opener {
            Some(opener) => self.domains.openers.insert(job, opener),
            None => self.domains.openers.remove(&job),
        };
        self.open_domain(job);
    }

    /// Whether a job opens a planning domain.
    pub(crate) fn opens_domain(&self, job: JobId) -> bool {
        self.domains.openers.contains_key(&job)
    }

    /// Counts all runs that hold resources for domains as running, for simulations.
    pub(crate) fn open_all_domains(&mut self) {
        let shut: Vec<(JobId, Opener)> = self
            .domains
            .openers
            .iter()
            .filter(|(_, opener)| opener.is_shut)
            .map(|(job, known)| (*job, known.clone()))
            .collect();
        for (job, opener) in shut {
            self.set_opener(job, Some(Opener { is_shut: false, ..opener }));
        }
    }

    /// The domain of a job has the nodes of its run from now on, if it opens one and has a run.
    ///
    /// The nodes of a domain have numbers in the order of the jobs that open it, so it does not matter when each did.
    pub(super) fn open_domain(&mut self, job: JobId) {
        let Some(key) = self.domains.openers.get(&job).map(|opener| opener.key.clone()) else { return };
        let behind = self.domains.open_behind(&key, job);
        behind.iter().for_each(|other| self.close_domain(*other));
        self.open_last(job);
        behind.into_iter().for_each(|other| self.open_last(other));
    }

    fn open_last(&mut self, job: JobId) {
        let Some(opener) = self.domains.openers.get(&job).cloned() else { return };
        let Some(known) = self.runs.get(&job) else { return };
        let (placement, until) = (self.real_placement(&known.run.placement), known.run.expected_end);
        let shares = joined(&placement);
        self.lift(&opener.key);
        let numbers = self.domains.numbers(shares.len());
        let nodes: Vec<InnerNode> = numbers.zip(shares).map(|(id, share)| InnerNode { id, share }).collect();
        for InnerNode { id, share } in &nodes {
            // Runs inside, which were lifted, have given back cores that the opener has too.
            self.machine.keep_taken(share);
            self.domains.real.insert(*id, share.node);
            let Some(real) = self.machine.node(share.node) else { continue };
            let (spec, closures) = (real.spec.clone(), real.closures().to_vec());
            let (is_available, faulty) = (real.is_available && !opener.is_shut, real.faulty_gpus());
            let rest = NodeShare {
                node: *id,
                cores: IndexSet::first_n(spec.cores).difference(&share.cores),
                gpus: IndexSet::new(),
                memory_bytes: 0,
                tasks: 0,
                exclusive: false,
            };
            let no_gpus = IndexSet::first_n(u32::try_from(spec.gpus.len()).unwrap_or(u32::MAX)).difference(&share.gpus);
            let spec = NodeSpec { memory_bytes: share.memory_bytes, ..(*spec).clone() };
            self.machine.set_node(*id, Arc::new(spec), false);
            self.machine.set_faulty_gpus(*id, &faulty.union(&no_gpus));
            self.machine.set_closures(*id, closures);
            self.machine.set_domain(*id, &opener.key, until, &rest);
            self.machine.set_available(*id, is_available);
        }
        self.domains.open.insert(job, nodes);
        self.expose(&opener.key);
        self.put_down(&opener.key);
    }

    /// The domain of a job no longer has the nodes of its run. Jobs inside have them on the real nodes.
    pub(super) fn close_domain(&mut self, job: JobId) {
        let Some(nodes) = self.domains.open.get(&job).cloned() else { return };
        let Some(key) = self.domains.openers.get(&job).map(|opener| opener.key.clone()) else { return };
        self.lift(&key);
        self.domains.open.remove(&job);
        for InnerNode { id, .. } in nodes {
            self.machine.remove_node(id);
            self.domains.real.remove(&id);
        }
        self.slots_in_doubt = true;
        self.expose(&key);
        self.put_down(&key);
    }

    /// A run that opened a domain has given back its cores. Those that runs inside had among them stay theirs.
    pub(super) fn keep_cores_of_others(&mut self, given_back: &Placement) {
        let nodes: BTreeSet<NodeId> = given_back.nodes().collect();
        for known in self.runs.values() {
            let shares = known.run.placement.shares().filter(|share| nodes.contains(&share.node));
            shares.for_each(|share| self.machine.keep_taken(share));
        }
    }

    /// Opens the domains again that have something of a real node, which has changed.
    pub(super) fn reopen_domains_on(&mut self, node: NodeId) {
        let has = |nodes: &Vec<InnerNode>| nodes.iter().any(|inner| inner.share.node == node);
        let jobs: Vec<JobId> = self.domains.open.iter().filter(|(_, nodes)| has(nodes)).map(|(job, _)| *job).collect();
        for job in jobs {
            self.close_domain(job);
            self.open_domain(job);
        }
    }

    /// A domain has the share of a real node that its first opener has there: no job gets two shares of one node.
    fn expose(&mut self, key: &str) {
        let mut seen: BTreeSet<NodeId> = BTreeSet::new();
        let nodes = self.domains.nodes_of(key).map(|(_, node)| (node.id, seen.insert(node.share.node)));
        let nodes: Vec<(NodeId, bool)> = nodes.collect();
        nodes.into_iter().for_each(|(node, is_first)| self.machine.expose(node, is_first));
    }

    /// Takes the holdings of a domain's jobs from the machine, by the numbers of the real nodes.
    fn lift(&mut self, key: &str) {
        self.move_inside(key, |engine, demand, placement, holding| {
            engine.machine.lend(demand, placement, holding);
            engine.real_placement(placement)
        });
    }

    /// Puts the holdings of a domain's jobs onto the machine.
    fn put_down(&mut self, key: &str) {
        self.move_inside(key, |engine, demand, placement, holding| {
            let inner = match holding {
                Holding::Run { .. } => engine.inner_placement(demand, placement),
                Holding::Promise { .. } => engine.inner_promise(demand, placement),
            };
            engine.machine.take(demand, &inner, holding);
            inner
        });
    }

    fn move_inside(
        &mut self,
        key: &str,
        mut to: impl FnMut(&mut Self, &Demand, &Arc<Placement>, Holding) -> Arc<Placement>,
    ) {
        let is_inside = |demand: &Demand| asked(demand).is_some_and(|asked| **asked == *key);
        let runs = self.runs.values().filter(|known| is_inside(&known.run.demand));
        let runs: BTreeSet<JobId> = runs.map(|known| known.run.job).collect();
        for job in runs {
            let Some(mut known) = self.runs.remove(&job) else { continue };
            let holding = Holding::Run { until: known.assumed_end };
            known.run.placement = to(self, &known.run.demand, &known.run.placement, holding);
            self.runs.insert(job, known);
        }
        if self.domains.waiting == 0 {
            return;
        }
        let waiting = self.queue.entries().filter(|entry| entry.slot.is_some());
        let waiting = waiting.filter(|entry| is_inside(&self.classes.get(entry.class).demand));
        let waiting: Vec<JobId> = waiting.map(|entry| entry.id).collect();
        for place in waiting.into_iter().filter_map(|job| self.queue.place_of(job)).collect::<Vec<_>>() {
            let Some(entry) = self.queue.get(place) else { continue };
            let demand = self.classes.get(entry.class).demand.clone();
            let Some(slot) = entry.slot.clone() else { continue };
            let placement = to(self, &demand, &slot.placement, Holding::Promise { start: slot.start });
            if let Some(entry) = self.queue.get_mut(place) {
                entry.slot = Some(Slot { start: slot.start, placement });
            }
        }
    }

    /// A placement with the numbers of real nodes.
    pub(crate) fn real_placement(&self, placement: &Arc<Placement>) -> Arc<Placement> {
        if placement.shares().all(|share| share.node.0 < FIRST_INNER) {
            return placement.clone();
        }
        let mut real = Placement::clone(placement);
        self.make_real(&mut real);
        Arc::new(real)
    }

    pub(crate) fn make_real(&self, placement: &mut Placement) {
        for share in placement.components.iter_mut().flat_map(|placed| &mut placed.shares) {
            share.node = self.real_node(share.node);
        }
    }

    pub(crate) fn real_node(&self, node: NodeId) -> NodeId {
        self.domains.real.get(&node).copied().unwrap_or(node)
    }

    /// The placement of a run, with the numbers of the nodes of its domain where these have its cores.
    pub(super) fn inner_placement(&self, demand: &Demand, placement: &Arc<Placement>) -> Arc<Placement> {
        self.placed_inside(demand, placement, |inner, share| {
            inner.share.node == share.node && inner.share.cores.contains_all(&share.cores)
        })
    }

    /// The placement of a promise, which is of no particular cores, with the numbers of the nodes of its domain.
    pub(super) fn inner_promise(&self, demand: &Demand, placement: &Arc<Placement>) -> Arc<Placement> {
        self.placed_inside(demand, placement, |inner, share| inner.share.node == share.node)
    }

    fn placed_inside(
        &self,
        demand: &Demand,
        placement: &Arc<Placement>,
        is_of: impl Fn(&InnerNode, &NodeShare) -> bool,
    ) -> Arc<Placement> {
        let Some(key) = asked(demand) else { return placement.clone() };
        let nodes: Vec<&InnerNode> = self.domains.nodes_of(key).map(|(_, node)| node).collect();
        let mut inner = Placement::clone(placement);
        for share in inner.components.iter_mut().flat_map(|placed| &mut placed.shares) {
            if let Some(node) = nodes.iter().find(|node| is_of(node, share)) {
                share.node = node.id;
            }
        }
        Arc::new(inner)
    }

    /// A promise with the numbers of the nodes of its domain.
    pub(super) fn inner_slot(&self, demand: &Demand, slot: Slot) -> Slot {
        Slot { placement: self.inner_promise(demand, &slot.placement), ..slot }
    }

    /// A run with the numbers of the nodes of its domain.
    pub(super) fn inner_run(&self, run: ActiveRun) -> ActiveRun {
        ActiveRun { placement: self.inner_placement(&run.demand, &run.placement), ..run }
    }

    /// Whether any run holds resources for a domain.
    pub(crate) fn has_domains(&self) -> bool {
        !self.domains.open.is_empty()
    }

    /// Whether a domain has something whose end nobody knows.
    pub(crate) fn is_endless(&self, key: &str) -> bool {
        let mut openers = self.domains.nodes_of(key).filter_map(|(job, _)| self.runs.get(&job));
        openers.any(|known| known.run.expected_end == Timestamp::MAX)
    }

    /// What a domain has that takes jobs or not: the number of its node, its share, and whether it takes jobs.
    pub(crate) fn nodes_in<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (NodeId, &'a NodeShare, bool)> {
        self.domains.nodes_of(key).map(|(job, node)| {
            let is_shut = self.domains.openers.get(&job).is_none_or(|opener| opener.is_shut);
            (node.id, &node.share, !is_shut)
        })
    }
}

/// The shares of a placement, one for each node, in the order of the nodes.
fn joined(placement: &Placement) -> Vec<NodeShare> {
    let mut of_nodes: BTreeMap<NodeId, NodeShare> = BTreeMap::new();
    for share in placement.shares() {
        match of_nodes.get_mut(&share.node) {
            None => drop(of_nodes.insert(share.node, share.clone())),
            Some(known) => {
                known.cores = known.cores.union(&share.cores);
                known.gpus = known.gpus.union(&share.gpus);
                known.memory_bytes = known.memory_bytes.saturating_add(share.memory_bytes);
                known.exclusive |= share.exclusive;
            }
        }
    }
    of_nodes.into_values().collect()
}
