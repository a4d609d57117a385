//! An engine and the lists of the reference, to which the same things happen.

use crate::{
    history::{Draft, History, Step},
    jobs::RESERVATIONS,
    reference::{Node, World},
    requests::LICENCE,
};
use muster_planner::{
    Engine,
    model::{ActiveRun, Closure, QueuedJob, QueuedTasks, Reservation},
    pass::Plan,
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    policy::Policy,
    resources::{IndexSet, NodeSpec, Placement},
};
use proptest::sample::Index;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The cluster as the engine and as the reference know it.
pub struct Twin {
    pub engine: Engine,
    pub world: World,
    pub policy: Arc<Policy>,
    pub now: Timestamp,
    drafts: BTreeMap<JobId, Draft>,
    /// When each run really ends.
    ends: BTreeMap<JobId, Timestamp>,
    held: Vec<QueuedJob>,
    removed: Vec<(NodeId, Node)>,
    next_wake: Option<Timestamp>,
}

/// One plan, with its input.
pub struct Planned<'p> {
    /// Before the plan.
    pub world: &'p World,
    pub policy: &'p Policy,
    pub now: Timestamp,
    pub plan: &'p Plan,
}

/// Replays a history and passes each plan to `look`.
pub fn replay(history: &History, mut look: impl FnMut(&Twin, &Planned)) {
    let mut twin = Twin::new(history);
    for step in &history.steps {
        twin.happen(step, &mut look);
    }
}

impl Twin {
    fn new(history: &History) -> Self {
        let cluster = &history.cluster;
        let node = |spec: &_| Node { spec: Arc::new(Clone::clone(spec)), is_available: true, closures: Vec::new() };
        let world = World {
            nodes: (0..).map(NodeId).zip(cluster.nodes.iter().map(node)).collect(),
            licences: [(LICENCE.to_owned(), cluster.licences)].into(),
            queues: cluster.queues.iter().map(|queue| (queue.name.clone(), queue.clone())).collect(),
            default_memory_per_core_bytes: cluster.default_memory_per_core_bytes,
            shares_nodes: history.policy.backfill.components.share_nodes,
            ..World::default()
        };
        let policy = Arc::new(history.policy.clone());
        Self {
            engine: engine_of(&world, &policy),
            world,
            policy,
            now: Timestamp::from_unix_seconds(1_000_000),
            drafts: BTreeMap::new(),
            ends: BTreeMap::new(),
            held: Vec::new(),
            removed: Vec::new(),
            next_wake: None,
        }
    }

    fn happen(&mut self, step: &Step, look: &mut impl FnMut(&Self, &Planned)) {
        match step {
            Step::Submit(draft) => (0..draft.copies).for_each(|_| self.submit(draft)),
            Step::Pass(seconds) => return self.pass_time(*seconds, look),
            Step::EndRun(at) => {
                if let Some(job) = pick(&self.world.runs, at) {
                    self.end(job);
                }
            }
            Step::Cancel(at) => {
                if let Some(job) = pick(&self.world.jobs, at) {
                    self.dequeue(job);
                }
            }
            Step::Hold(at) => {
                if let Some(job) = pick(&self.world.jobs, at).and_then(|id| self.dequeue(id)) {
                    self.held.push(QueuedJob { slot: None, ..job });
                }
            }
            Step::Release => {
                if let Some(job) = self.held.pop() {
                    self.enqueue(job);
                }
            }
            Step::Priority(at, priority) => {
                if let Some(job) = pick(&self.world.jobs, at) {
                    let job = QueuedJob { priority: *priority, ..self.world.jobs[&job].clone() };
                    self.enqueue(job);
                }
            }
            Step::SetBack(seconds) => self.now = self.now.plus_seconds(-i64::from(*seconds)),
            Step::ChangeNode(at, spec) => self.change_node(at, spec),
            Step::RemoveNode(at) => self.remove_node(at),
            Step::AddNode => {
                if let Some((id, node)) = self.removed.pop() {
                    self.engine.set_node(id, node.spec.clone(), node.is_available);
                    self.world.nodes.insert(id, node);
                }
            }
            Step::LoseNode(at) => self.set_available(at, false),
            Step::ReturnNode(at) => self.set_available(at, true),
            Step::Close(at, after, lasts) => {
                let from = self.now.plus_seconds(i64::from(*after));
                let until = from.plus_seconds(i64::from(*lasts));
                self.change_closures(at, |closures| closures.push(Closure { from, until }));
            }
            Step::Reopen(at) => {
                self.change_closures(at, |closures| closures.truncate(closures.len().saturating_sub(1)))
            }
            Step::Reserve(name, nodes, after, lasts) => self.reserve(RESERVATIONS[*name], *nodes, *after, *lasts),
            Step::CancelReservation(name) => {
                self.world.reservations.remove(RESERVATIONS[*name]);
                self.engine.remove_reservation(RESERVATIONS[*name]);
            }
            Step::Licences(total) => {
                self.world.licences.insert(LICENCE.to_owned(), *total);
                self.engine.set_licence(LICENCE, *total);
            }
            Step::Policy(policy) => {
                self.policy = Arc::new(Policy::clone(policy));
                self.world.shares_nodes = policy.backfill.components.share_nodes;
                self.engine = engine_of(&self.world, &self.policy);
                self.world.capacity_freed = true;
            }
        }
        self.settle(look);
    }

    fn submit(&mut self, draft: &Draft) {
        let id = JobId::job(self.drafts.len() as u64 + 1);
        self.drafts.insert(id, draft.clone());
        let tasks = draft.array.map(|(tasks, most)| QueuedTasks { indices: IndexSet::first_n(tasks), headroom: most });
        self.enqueue(QueuedJob {
            id,
            tasks,
            demand: draft.demand.clone(),
            holder: draft.holder.clone(),
            priority: draft.priority,
            is_list: false,
            arrival: self.now,
            attributes: None,
            slot: None,
            activation: None,
        });
    }

    fn enqueue(&mut self, job: QueuedJob) {
        self.engine.enqueue(job.clone());
        self.world.jobs.insert(job.id, job);
    }

    fn dequeue(&mut self, id: JobId) -> Option<QueuedJob> {
        self.engine.dequeue(id);
        self.world.jobs.remove(&id)
    }

    /// Time passes. Everything due on the way happens at its moment.
    fn pass_time(&mut self, seconds: u32, look: &mut impl FnMut(&Self, &Planned)) {
        let target = self.now.plus_seconds(i64::from(seconds));
        loop {
            let next = self.ends.values().copied().chain(self.next_wake).min();
            self.now = next.map_or(target, |next| next.min(target));
            let over: Vec<JobId> = self.ends.iter().filter(|(_, end)| **end <= self.now).map(|(job, _)| *job).collect();
            over.into_iter().for_each(|job| self.end(job));
            self.settle(look);
            if self.now == target {
                return;
            }
        }
    }

    /// Plans until nothing more starts.
    fn settle(&mut self, look: &mut impl FnMut(&Self, &Planned)) {
        loop {
            let before = self.world.clone();
            self.engine.set_capacity_freed(before.capacity_freed);
            let plan = self.engine.pass(self.now, &BTreeSet::new());
            self.world = waiting_after(&before, &plan);
            look(self, &Planned { world: &before, policy: &self.policy, now: self.now, plan: &plan });
            self.next_wake = plan.next_wake.filter(|wake| *wake > self.now);
            for start in &plan.starts {
                self.start(&before, start.job, &start.placement);
            }
            if plan.starts.is_empty() {
                return;
            }
        }
    }

    fn start(&mut self, before: &World, id: JobId, placement: &Placement) {
        let job = &before.jobs[&id.whole()];
        let draft = &self.drafts[&id.whole()];
        let longest = longest_walltime(draft, placement);
        let ends_after = match longest {
            Some(walltime) => (walltime * u64::from(draft.runs_percent)).div_ceil(100).max(1),
            None => u64::from(draft.runs_percent),
        };
        self.ends.insert(id, self.now.plus_seconds(ends_after as i64));
        let run = ActiveRun {
            job: id,
            demand: job.demand.clone(),
            holder: job.holder.clone(),
            placement: Arc::new(placement.clone()),
            expected_end: longest.map_or(Timestamp::MAX, |walltime| self.now.plus_seconds(walltime as i64)),
            attributes: None,
        };
        match self.world.jobs.get(&id.whole()) {
            Some(rest) => self.engine.enqueue(rest.clone()),
            None => self.engine.dequeue(id.whole()),
        }
        self.engine.begin(run.clone());
        self.world.runs.insert(id, run);
    }

    fn end(&mut self, id: JobId) {
        self.ends.remove(&id);
        self.world.runs.remove(&id);
        self.world.capacity_freed = true;
        self.engine.end(id);
        // A finished task makes room for the next one of its array.
        if let Some(mut job) = self.world.jobs.get(&id.whole()).filter(|_| id.index.is_some()).cloned() {
            if let Some(tasks) = &mut job.tasks {
                tasks.headroom += 1;
            }
            self.enqueue(job);
        }
    }

    fn set_available(&mut self, at: &Index, is_available: bool) {
        let Some(id) = pick(&self.world.nodes, at) else { return };
        if let Some(node) = self.world.nodes.get_mut(&id) {
            node.is_available = is_available;
            self.engine.set_node(id, node.spec.clone(), is_available);
        }
        if !is_available {
            self.end_all_on(id);
        }
    }

    /// Runs on a lost node are lost.
    fn end_all_on(&mut self, id: NodeId) {
        let is_there = |run: &ActiveRun| run.placement.shares().any(|share| share.node == id);
        let lost: Vec<JobId> = self.world.runs.values().filter(|run| is_there(run)).map(|run| run.job).collect();
        lost.into_iter().for_each(|job| self.end(job));
    }

    fn change_node(&mut self, at: &Index, spec: &NodeSpec) {
        let Some(id) = pick(&self.world.nodes, at) else { return };
        self.end_all_on(id);
        if let Some(node) = self.world.nodes.get_mut(&id) {
            // The slow planner looks up promised GPUs by number.
            let (name, gpus) = (node.spec.name.clone(), node.spec.gpus.clone());
            node.spec = Arc::new(NodeSpec { name, gpus, ..spec.clone() });
            self.engine.set_node(id, node.spec.clone(), node.is_available);
        }
    }

    fn remove_node(&mut self, at: &Index) {
        let Some(id) = pick(&self.world.nodes, at) else { return };
        self.end_all_on(id);
        self.engine.remove_node(id);
        if let Some(node) = self.world.nodes.remove(&id) {
            self.removed.push((id, Node { closures: Vec::new(), ..node }));
        }
    }

    fn change_closures(&mut self, at: &Index, change: impl FnOnce(&mut Vec<Closure>)) {
        let Some(id) = pick(&self.world.nodes, at) else { return };
        if let Some(node) = self.world.nodes.get_mut(&id) {
            change(&mut node.closures);
            self.engine.set_closures(id, node.closures.clone());
        }
    }

    /// Makes a reservation, unless a node of it is reserved at that time already.
    fn reserve(&mut self, name: &str, nodes: u16, after: u32, lasts: u32) {
        let start = self.now.plus_seconds(i64::from(after));
        let end = start.plus_seconds(i64::from(lasts));
        let all = self.world.nodes.keys().enumerate();
        let nodes: Vec<NodeId> = all.filter(|(at, _)| nodes >> at & 1 == 1).map(|(_, id)| *id).collect();
        let mut others = self.world.reservations.values().filter(|other| *other.name != *name);
        let collides = others
            .any(|other| other.start < end && start < other.end && other.nodes.iter().any(|node| nodes.contains(node)));
        if !collides {
            let reservation = Reservation {
                name: name.into(),
                start,
                end,
                nodes,
                overlaps: false,
                attracts: false,
                is_flexible: false,
            };
            self.engine.set_reservation(reservation.clone());
            self.world.reservations.insert(name.into(), reservation);
        }
    }
}

/// The cluster after a plan before its starts run: the jobs that still wait, with their promises.
pub fn waiting_after(before: &World, plan: &Plan) -> World {
    let mut after = World { capacity_freed: false, ..before.clone() };
    for (id, slot) in &plan.slots {
        if let Some(job) = after.jobs.get_mut(id) {
            job.slot = slot.clone();
        }
    }
    for start in &plan.starts {
        let whole = start.job.whole();
        let Some(job) = after.jobs.get_mut(&whole) else { continue };
        if let (Some(index), Some(tasks)) = (start.job.index, &mut job.tasks) {
            if tasks.indices.first() == Some(index) {
                job.slot = None;
            }
            tasks.indices.remove(index);
            tasks.headroom -= 1;
            if !tasks.indices.is_empty() {
                continue;
            }
        }
        after.jobs.remove(&whole);
    }
    after
}

/// An engine that is told the whole state at once.
pub fn engine_of(world: &World, policy: &Arc<Policy>) -> Engine {
    let mut engine = Engine::new(policy.clone()).expect("a policy that can be followed");
    engine.set_capacity_freed(world.capacity_freed);
    engine.set_default_memory_per_core_bytes(world.default_memory_per_core_bytes);
    for (id, node) in &world.nodes {
        engine.set_node(*id, node.spec.clone(), node.is_available);
        engine.set_closures(*id, node.closures.clone());
    }
    world.licences.iter().for_each(|(name, total)| engine.set_licence(name, *total));
    world.queues.values().for_each(|queue| engine.set_queue(queue));
    world.reservations.values().for_each(|reservation| engine.set_reservation(reservation.clone()));
    world.runs.values().for_each(|run| engine.begin(run.clone()));
    world.jobs.values().for_each(|job| engine.enqueue(job.clone()));
    engine
}

fn longest_walltime(draft: &Draft, placement: &Placement) -> Option<u64> {
    let components = draft.demand.components.iter().zip(&placement.components);
    let walltimes = components
        .map(|(component, placed)| component.alternatives[placed.alternative as usize].walltime_seconds)
        .collect::<Option<Vec<u64>>>();
    walltimes?.into_iter().max()
}

fn pick<K: Copy, V>(from: &BTreeMap<K, V>, at: &Index) -> Option<K> {
    (!from.is_empty()).then(|| *from.keys().nth(at.index(from.len())).expect("within"))
}
