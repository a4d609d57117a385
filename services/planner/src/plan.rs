//! One planning cycle: a pure function from what is to what shall start, and why the rest waits.

use crate::{
    free::{Free, FreeNode, Undo},
    order::{LaneNumber, Order, Walk},
    place::{Scope, place_alternative},
};
use muster_domain::{
    State,
    state::{Component, Job, Node, ShapeId},
};
use muster_schemas::{
    JobId, NodeId,
    command::Start,
    event::WaitingJob,
    job::WaitReason,
    resources::{Alternative, ComponentPlacement, IndexSet, Placement},
};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What a cycle looks at.
#[derive(Clone, Copy, Debug)]
pub struct View<'v> {
    /// The cluster.
    pub state: &'v State,
    /// The jobs that wait in it, in order.
    pub order: &'v Order,
    /// Jobs that are left out, because a start of theirs was refused and nothing has changed since.
    pub left_out: &'v BTreeSet<JobId>,
}

/// What is decided by the site rather than by the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// At most so many starts in one cycle; what is left starts in the next.
    pub max_starts: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Self { max_starts: 1000 }
    }
}

/// What a cycle decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Jobs that start now, in their order.
    pub starts: Vec<Start>,
    /// Why those jobs wait that were looked at and not started. A job that was not looked at waits behind another or for
    /// a limit, which the state tells by itself.
    pub reasons: Vec<WaitingJob>,
    /// Whether the cycle ended early because it has as many starts as it may.
    pub is_cut_short: bool,
}

/// Plans strictly in order: a job that cannot start for want of resources lets no later job have nodes that it could
/// wait for. The same view and policy always give the same plan.
pub fn plan(view: &View, policy: &Policy) -> Plan {
    let mut cycle = Cycle::new(view);
    let mut walk = view.order.walk(view.state);
    while let Some((lane, job)) = walk.next() {
        if cycle.plan.starts.len() >= policy.max_starts {
            cycle.plan.is_cut_short = true;
            break;
        }
        cycle.look_at(&mut walk, lane, job, policy);
    }
    cycle.plan
}

/// What equal requests have in common: shape and queue of each component.
type RequestKey = Vec<(ShapeId, Arc<str>)>;

struct Cycle<'v> {
    view: &'v View<'v>,
    free: Free<'v>,
    plan: Plan,
    /// Jobs started in this cycle by queue, by queue and user, and by array.
    started: BTreeMap<Arc<str>, u32>,
    started_of_array: BTreeMap<u64, u32>,
    started_by_user: BTreeMap<(Arc<str>, &'v str), u32>,
    /// Queues in which an earlier job waits for resources: the job.
    blocked: BTreeMap<Arc<str>, JobId>,
    /// Why requests cannot be served that no waiting helps.
    hopeless: BTreeMap<RequestKey, WaitReason>,
}

impl<'v> Cycle<'v> {
    fn new(view: &'v View<'v>) -> Self {
        Self {
            view,
            free: free_now(view.state),
            plan: Plan::default(),
            started: BTreeMap::new(),
            started_of_array: BTreeMap::new(),
            started_by_user: BTreeMap::new(),
            blocked: BTreeMap::new(),
            hopeless: BTreeMap::new(),
        }
    }

    /// Starts a job, or tells why it waits, and goes on in its lane if jobs behind it may still start.
    fn look_at(&mut self, walk: &mut Walk, lane: LaneNumber, job: &'v Job, policy: &Policy) {
        if self.view.left_out.contains(&job.id) {
            return walk.go_on(lane);
        }
        match self.start(job, policy.max_starts) {
            Verdict::Started | Verdict::Passed => walk.go_on(lane),
            Verdict::Hopeless(reason) => {
                self.tell(job, reason);
                walk.go_on(lane);
            }
            Verdict::LaneShut => {}
            Verdict::Blocked(reason) => {
                self.tell(job, reason);
                self.block(job);
            }
        }
    }

    /// Starts the job, or as many tasks of the array as may and can.
    fn start(&mut self, job: &'v Job, max_starts: usize) -> Verdict {
        let state = self.view.state;
        if let Some(reason) = state.gate_reason(job) {
            return if reason == WaitReason::QueueStopped { Verdict::LaneShut } else { Verdict::Passed };
        }
        if let Some(blocker) = job.queues().find_map(|queue| self.blocked.get(queue)) {
            // One that is behind in one queue holds up the others that it is in, which has to be told.
            let is_in_others = job.queues().any(|queue| !self.blocked.contains_key(queue));
            return if is_in_others { Verdict::Blocked(WaitReason::BehindJob(*blocker)) } else { Verdict::LaneShut };
        }
        let Some(array) = &job.array else { return self.start_one(job, job.id) };
        for index in state.startable(job, array).iter() {
            if self.plan.starts.len() >= max_starts {
                return Verdict::Passed;
            }
            match self.start_one(job, JobId::task(job.id.number, index)) {
                Verdict::Started => {}
                other => return other,
            }
        }
        Verdict::Passed
    }

    fn start_one(&mut self, job: &'v Job, id: JobId) -> Verdict {
        if self.is_array_full(id) {
            return Verdict::Passed;
        }
        if self.is_limit_reached(&job.lead().queue, job) {
            return Verdict::LaneShut;
        }
        if job.queues().any(|queue| self.is_limit_reached(queue, job)) {
            return Verdict::Passed;
        }
        if let Some(reason) = self.hopeless.get(&request_key(job)) {
            return Verdict::Hopeless(reason.clone());
        }
        match place_job(self.view.state, &mut self.free, job) {
            Some(placement) => {
                self.count_start(job, id);
                self.plan.starts.push(Start { job: id, placement });
                Verdict::Started
            }
            None => self.why_not(job),
        }
    }

    fn why_not(&mut self, job: &Job) -> Verdict {
        let state = self.view.state;
        let reason = if place_job(state, &mut free_of_all_nodes(state), job).is_none() {
            WaitReason::NeverFits("the nodes and licences as configured cannot serve it".into())
        } else if place_job(state, &mut free_of_available_nodes(state), job).is_none() {
            WaitReason::NodesUnavailable(unavailable_nodes(state))
        } else {
            return Verdict::Blocked(WaitReason::Resources(shortage(state, &self.free, job).into()));
        };
        self.hopeless.insert(request_key(job), reason.clone());
        Verdict::Hopeless(reason)
    }

    fn is_limit_reached(&self, name: &Arc<str>, job: &Job) -> bool {
        let Some(queue) = self.view.state.queue(name) else { return true };
        let user = job.owner.user.as_str();
        let running = queue.running + self.started.get(name).copied().unwrap_or(0);
        let of_user = queue.running_of(user) + self.started_by_user.get(&(name.clone(), user)).copied().unwrap_or(0);
        queue.spec.max_running_jobs.is_some_and(|most| running >= most)
            || queue.spec.max_running_jobs_per_user.is_some_and(|most| of_user >= most)
    }

    /// Whether as many tasks of the array run as may; its tasks that were put back into the queue count as well.
    fn is_array_full(&self, id: JobId) -> bool {
        let array = self.view.state.job(id.whole()).and_then(|whole| whole.array.as_ref());
        let started = self.started_of_array.get(&id.number).copied().unwrap_or(0);
        array.is_some_and(|array| array.headroom() <= started)
    }

    fn count_start(&mut self, job: &'v Job, id: JobId) {
        if id.index.is_some() {
            *self.started_of_array.entry(id.number).or_default() += 1;
        }
        for queue in job.queues() {
            *self.started.entry(queue.clone()).or_default() += 1;
            *self.started_by_user.entry((queue.clone(), &job.owner.user)).or_default() += 1;
        }
    }

    /// From here on no job may have nodes that this one could wait for: those of its queues.
    fn block(&mut self, job: &Job) {
        let own: Vec<_> = job.queues().filter_map(|name| self.view.state.queue(name)).collect();
        for queue in self.view.state.queues() {
            if own.iter().any(|own| own.spec.shares_nodes(&queue.spec)) {
                self.blocked.entry(queue.spec.name.as_str().into()).or_insert(job.id);
            }
        }
    }

    fn tell(&mut self, job: &Job, reason: WaitReason) {
        self.plan.reasons.push(WaitingJob { job: job.id, reason });
    }
}

/// What came of a look at a job.
enum Verdict {
    /// It starts: the jobs behind it are next.
    Started,
    /// It waits for something that only concerns it and that the state tells: the jobs behind it are next.
    Passed,
    /// Neither it nor the jobs behind it in its lane may start now, and why does not need to be told.
    LaneShut,
    /// It cannot be served and waiting alone does not help: the jobs behind it are next.
    Hopeless(WaitReason),
    /// It waits for resources that others have: no job behind it may take them.
    Blocked(WaitReason),
}

fn request_key(job: &Job) -> RequestKey {
    job.components.iter().map(|component| (component.shape.id, component.queue.clone())).collect()
}

/// Places all components of a job and takes what they need; `None`, and nothing taken, if they do not all fit.
fn place_job<'a>(state: &State, free: &mut Free<'a>, job: &Job) -> Option<Placement> {
    let mut undo = Undo::default();
    let mut taken_nodes = BTreeSet::new();
    let mut components = Vec::with_capacity(job.components.len());
    for component in &job.components {
        let Some(placed) = place_component(state, free, component, &taken_nodes, &mut undo) else {
            free.undo(undo);
            return None;
        };
        taken_nodes.extend(placed.shares.iter().map(|share| share.node));
        components.push(placed);
    }
    Some(Placement { components })
}

/// Takes the alternative that would end first of those that fit; of equal ones the first.
fn place_component<'a>(
    state: &State,
    free: &mut Free<'a>,
    component: &Component,
    taken_nodes: &BTreeSet<NodeId>,
    undo: &mut Undo<'a>,
) -> Option<ComponentPlacement> {
    let queue_nodes = state.queue(&component.queue).map_or(&[][..], |queue| &queue.spec.nodes);
    let default_memory_per_core_bytes = state.settings().default_memory_per_core_bytes;
    let scope = Scope { queue_nodes, taken_nodes, default_memory_per_core_bytes };
    let mut alternatives: Vec<(u32, &Alternative)> = (0..).zip(component.shape.alternatives.iter()).collect();
    alternatives.sort_by_key(|(_, alternative)| alternative.walltime_seconds.unwrap_or(u64::MAX));
    alternatives
        .into_iter()
        .find_map(|(number, alternative)| place_alternative(free, &scope, number, alternative, undo))
}

/// What is free at this moment on the nodes that take jobs.
fn free_now(state: &State) -> Free<'_> {
    let nodes = state.nodes().filter(|node| node.is_available()).map(|node| FreeNode {
        node: node.id,
        spec: &node.spec,
        cores: Cow::Borrowed(&node.free_cores),
        gpus: Cow::Borrowed(&node.free_gpus),
        memory_bytes: node.free_memory_bytes,
        idle: node.runs.is_empty(),
        exclusive: node.exclusive.is_some(),
    });
    Free::new(nodes, state.licences().map(|(name, licence)| (name, licence.free())))
}

/// What would be free if nothing ran and every node took jobs.
fn free_of_all_nodes(state: &State) -> Free<'_> {
    free_of_empty(state, state.nodes())
}

/// What would be free if nothing ran.
fn free_of_available_nodes(state: &State) -> Free<'_> {
    free_of_empty(state, state.nodes().filter(|node| node.is_available()))
}

fn free_of_empty<'a>(state: &'a State, nodes: impl Iterator<Item = &'a Node>) -> Free<'a> {
    let nodes = nodes.map(|node| FreeNode::empty(node.id, &node.spec));
    Free::new(nodes, state.licences().map(|(name, licence)| (name, licence.total)))
}

/// What a job lacks that would fit if nothing ran: the one thing of which more would help, if there is one.
fn shortage(state: &State, free: &Free, job: &Job) -> &'static str {
    let helps = |change: fn(&mut FreeNode)| {
        let mut nodes = free.nodes().to_vec();
        nodes.iter_mut().for_each(change);
        let licences = state.licences().map(|(name, _)| (name, free.licence(name)));
        place_job(state, &mut Free::new(nodes, licences), job).is_some()
    };
    let licences = state.licences().map(|(name, licence)| (name, licence.total));
    if place_job(state, &mut Free::new(free.nodes().to_vec(), licences), job).is_some() {
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

/// At most so many names in a reason.
const NAMES_IN_REASON: usize = 5;

/// The nodes that take no jobs, for people.
fn unavailable_nodes(state: &State) -> String {
    let names: Vec<&str> =
        state.nodes().filter(|node| !node.is_available()).map(|node| node.spec.name.as_str()).collect();
    let shown = names[..names.len().min(NAMES_IN_REASON)].join(",");
    match names.len().saturating_sub(NAMES_IN_REASON) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
