//! The planner's decisions, each checked against the state and what the same plan has started before it.

use super::{Decision, access::Access, invalid, planning};
use crate::{
    requests::{self, Minimum},
    state::{Component, Job, Licence, Node, Queue, State, node::gpu_count},
    validate,
};
use muster_schemas::{
    JobId, NodeId, RunId, Timestamp,
    command::{Refusal, RefusedStart, Reply, Start},
    event::{Event, WaitingJob},
    plan::{PlanRecord, PlannedSlot, PredictedStart, ProposedPlan},
    resources::{Alternative, ComponentPlacement, NodeShare, Placement, Sharing},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

pub(super) fn commit(access: &Access, proposed: ProposedPlan, now: Timestamp) -> Result<Decision, Refusal> {
    access.require_planner()?;
    let state = access.state;
    let ProposedPlan { seen, at, left_out, starts, reasons, slots, predictions, reservations, .. } = proposed;
    if seen > state.sequence() {
        return Err(invalid(format!("the plan has seen record {seen}, the last is {}", state.sequence())));
    }
    let mut events = planning::place_reservations(state, reservations);
    let mut plan = Plan::new(state, now);
    let mut refused = Vec::new();
    events.reserve(starts.len() + 1);
    for Start { job, placement } in starts {
        match plan.start(job, &placement) {
            Ok(run) => events.push(Event::RunAllocated { job, run, placement: Arc::new(placement) }),
            Err(reason) => refused.push(RefusedStart { job, reason }),
        }
    }
    let record = PlanRecord {
        seen,
        at,
        left_out,
        refused: refused.iter().map(|start| start.job).collect(),
        reasons: reasons.into_iter().filter(|waiting| plan.is_news(waiting)).collect(),
        slots: slots.into_iter().filter(|planned| plan.is_new_slot(planned)).collect(),
        predictions: predictions.into_iter().filter(|predicted| plan.is_new_prediction(predicted)).collect(),
    };
    let says_something = !(record.refused.is_empty()
        && record.reasons.is_empty()
        && record.slots.is_empty()
        && record.predictions.is_empty());
    if says_something || !events.is_empty() {
        events.push(Event::Planned { plan: Arc::new(record) });
    }
    Ok(Decision { events, reply: Reply::Planned(refused) })
}

/// The state with the starts that were accepted so far on top.
struct Plan<'a> {
    state: &'a State,
    now: Timestamp,
    next_run: RunId,
    started: BTreeSet<JobId>,
    nodes: BTreeMap<NodeId, Node>,
    licences: BTreeMap<String, Licence>,
    queues: BTreeMap<String, Queue>,
    arrays: BTreeMap<u64, u32>,
}

impl<'a> Plan<'a> {
    fn new(state: &'a State, now: Timestamp) -> Self {
        Self {
            state,
            now,
            next_run: state.next_run(),
            started: BTreeSet::new(),
            nodes: BTreeMap::new(),
            licences: BTreeMap::new(),
            queues: BTreeMap::new(),
            arrays: BTreeMap::new(),
        }
    }

    fn start(&mut self, id: JobId, placement: &Placement) -> Result<RunId, String> {
        let job = self.startable(id)?;
        self.check_array(job, id)?;
        self.check_queues(job)?;
        self.check_placement(job, placement)?;
        let run = self.next_run;
        self.next_run = RunId(run.0 + 1);
        self.started.insert(id);
        self.take(job, id, run, placement);
        Ok(run)
    }

    /// The job, or for a task that has never started its array, if its gates are open.
    fn startable(&self, id: JobId) -> Result<&'a Job, String> {
        if self.started.contains(&id) {
            return Err("the plan starts it twice".into());
        }
        let known = self.state.job(id);
        let job = known.or_else(|| id.index.and_then(|_| self.state.job(id.whole())));
        let job = job.ok_or("it does not exist any more")?;
        match (&job.array, id.index) {
            (Some(_), None) => return Err("an array is started by its tasks".into()),
            (Some(array), Some(index)) if !self.state.startable(job, array).contains(index) => {
                return Err("the task does not wait, or is held".into());
            }
            _ => {}
        }
        if !job.is_waiting() {
            return Err("it does not wait any more".into());
        }
        match self.state.gate_reason(job) {
            Some(reason) => Err(reason.to_string()),
            None => Ok(job),
        }
    }

    fn check_array(&self, job: &Job, id: JobId) -> Result<(), String> {
        if id.index.is_none() {
            return Ok(());
        }
        let whole = if job.array.is_some() { Some(job) } else { self.state.job(id.whole()) };
        let started = self.arrays.get(&id.number).copied().unwrap_or(0);
        match whole.and_then(|whole| whole.array.as_ref()) {
            Some(array) if array.headroom() <= started => Err("as many tasks of its array run as may".into()),
            _ => Ok(()),
        }
    }

    fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues.get(name).or_else(|| self.state.queue(name))
    }

    fn check_queues(&self, job: &Job) -> Result<(), String> {
        for name in job.queues() {
            let queue = self.queue(name).ok_or_else(|| format!("queue `{name}` does not exist"))?;
            if queue.spec.max_running_jobs.is_some_and(|most| queue.running >= most) {
                return Err(format!("as many jobs of queue `{name}` run as may"));
            }
            let of_user = queue.running_of(&job.owner.user);
            if queue.spec.max_running_jobs_per_user.is_some_and(|most| of_user >= most) {
                return Err(format!("as many jobs of user {} run in queue `{name}` as may", job.owner.user));
            }
        }
        Ok(())
    }

    fn check_placement(&self, job: &Job, placement: &Placement) -> Result<(), String> {
        if placement.components.len() != job.components.len() {
            let (placed, wanted) = (placement.components.len(), job.components.len());
            return Err(format!("{placed} components are placed, the job has {wanted}"));
        }
        let mut seen = BTreeSet::new();
        if !placement.shares().all(|share| seen.insert(share.node)) {
            return Err("two components, or one twice, are placed on the same node".into());
        }
        let mut licences: BTreeMap<&str, u64> = BTreeMap::new();
        for (component, placed) in job.components.iter().zip(&placement.components) {
            let alternative = component.shape.alternatives.get(placed.alternative as usize);
            let alternative = alternative.ok_or("the alternative does not exist")?;
            self.check_component(component, alternative, placed)?;
            self.check_reservations(job, component, placed)?;
            for (name, count) in &alternative.licences {
                *licences.entry(name).or_default() += u64::from(*count);
            }
        }
        self.check_licences(&licences)
    }

    fn check_licences(&self, wanted: &BTreeMap<&str, u64>) -> Result<(), String> {
        for (name, count) in wanted {
            let free = self.licences.get(*name).or_else(|| self.state.licence(name)).map_or(0, Licence::free);
            if u64::from(free) < *count {
                return Err(format!("{free} of licence `{name}` are free, {count} are needed"));
            }
        }
        Ok(())
    }

    fn check_component(
        &self,
        component: &Component,
        alternative: &Alternative,
        placed: &ComponentPlacement,
    ) -> Result<(), String> {
        let queue = self.state.queue(&component.queue).ok_or("its queue does not exist")?;
        for share in &placed.shares {
            let node = self.nodes.get(&share.node).or_else(|| self.state.node(share.node));
            let node = node.ok_or_else(|| format!("node {} does not exist", share.node))?;
            let name = &node.spec.name;
            if !queue.spec.nodes.is_empty() && !queue.spec.nodes.contains(name) {
                return Err(format!("node {name} does not serve queue `{}`", component.queue));
            }
            if !alternative.requests.iter().any(|request| requests::node_serves(&node.spec, request)) {
                return Err(format!("node {name} is not of the kind that the job asks for"));
            }
            if let Some(closure) = node.closure_at(self.now) {
                let because = if closure.reason.is_empty() { String::new() } else { format!(": {}", closure.reason) };
                return Err(format!("node {name} is closed until {}{because}", closure.until));
            }
            check_share(node, share)?;
        }
        check_amounts(self.state, alternative, placed)
    }

    /// Whether the placement of a component keeps to the reservation that it names, and off all others.
    fn check_reservations(&self, job: &Job, component: &Component, placed: &ComponentPlacement) -> Result<(), String> {
        let own = component.reservation();
        if let Some(name) = own {
            let reservation =
                self.state.reservation(name).ok_or_else(|| format!("reservation `{name}` does not exist"))?;
            if !reservation.is_active(self.now) {
                return Err(format!("reservation `{name}` has not begun, or is over"));
            }
            if !reservation.admits(&job.owner.user, component.account.as_deref()) {
                return Err(format!("user {} may not use reservation `{name}`", job.owner.user));
            }
            if let Some(outside) = placed.shares.iter().find(|share| !reservation.nodes.contains(&share.node)) {
                let node = self.state.node_name(outside.node);
                return Err(format!("node {node} is not one of reservation `{name}`"));
            }
        }
        for share in &placed.shares {
            let mut others = self.state.reservations_of(share.node).filter(|other| other.is_active(self.now));
            if let Some(other) = others.find(|other| own.is_none_or(|own| **own != *other.spec.name)) {
                let (node, name) = (self.state.node_name(share.node), &other.spec.name);
                return Err(format!("node {node} is kept for reservation `{name}`"));
            }
        }
        Ok(())
    }

    fn take(&mut self, job: &Job, id: JobId, run: RunId, placement: &Placement) {
        for share in placement.shares() {
            if let Some(node) = self.state.node(share.node) {
                self.nodes.entry(share.node).or_insert_with(|| node.clone()).take(run, share);
            }
        }
        for (component, placed) in job.components.iter().zip(&placement.components) {
            let Some(alternative) = component.shape.alternatives.get(placed.alternative as usize) else { continue };
            for (name, count) in &alternative.licences {
                let known = self.state.licence(name).copied().unwrap_or_default();
                self.licences.entry(name.clone()).or_insert(known).used += count;
            }
        }
        for name in job.queues() {
            if let Some(queue) = self.state.queue(name) {
                self.queues.entry(name.to_string()).or_insert_with(|| queue.clone()).run_began(&job.owner.user);
            }
        }
        if id.index.is_some() {
            *self.arrays.entry(id.number).or_default() += 1;
        }
    }

    /// A job that waits on after this plan; an array, as long as tasks of it do.
    fn waiting(&self, id: JobId) -> Option<&'a Job> {
        self.state.job(id).filter(|job| job.is_waiting() && !self.started.contains(&job.id) && self.has_tasks_left(job))
    }

    /// Whether tasks of an array wait on that have never started. A job that is no array counts as one.
    fn has_tasks_left(&self, job: &Job) -> bool {
        let Some(array) = &job.array else { return true };
        let tasks = self.started.range(JobId::task(job.id.number, 0)..=JobId::task(job.id.number, u32::MAX));
        let first_started = tasks.filter(|task| task.index.is_some_and(|index| array.remaining.contains(index)));
        array.remaining.len() > first_started.count() as u64
    }

    /// Whether a reason is of a job that still waits, and differs from the one that is known.
    fn is_news(&self, waiting: &WaitingJob) -> bool {
        self.waiting(waiting.job).is_some_and(|job| job.planner_reason.as_deref() != Some(&waiting.reason))
    }

    /// Whether what was known of the start of a job that waits is void by now: it was of a task that starts.
    fn is_void(&self, job: &Job) -> bool {
        job.array.is_some() && self.arrays.contains_key(&job.id.number)
    }

    fn is_new_slot(&self, planned: &PlannedSlot) -> bool {
        let known = |job: &&Job| job.slot.as_deref().filter(|_| !self.is_void(job)) == planned.slot.as_ref();
        self.waiting(planned.job).is_some_and(|job| job.gates_open() && !known(&job))
    }

    fn is_new_prediction(&self, predicted: &PredictedStart) -> bool {
        let known = |job: &&Job| job.predicted_start.filter(|_| !self.is_void(job)) == predicted.start;
        self.waiting(predicted.job).is_some_and(|job| job.gates_open() && !known(&job))
    }
}

/// Whether a share is free on its node.
fn check_share(node: &Node, share: &NodeShare) -> Result<(), String> {
    let name = &node.spec.name;
    let problem = if !node.is_available() {
        "is not available"
    } else if node.exclusive.is_some() {
        "is used exclusively by another job"
    } else if share.exclusive && !node.runs.is_empty() {
        "is not empty, and the job wants it for itself"
    } else if !validate::within(&share.cores, node.spec.cores) || !node.free_cores.contains_all(&share.cores) {
        "does not have these cores free"
    } else if !validate::within(&share.gpus, gpu_count(&node.spec)) || !node.free_gpus.contains_all(&share.gpus) {
        "does not have these GPUs free"
    } else if share.memory_bytes > node.free_memory_bytes {
        "does not have this memory free"
    } else if share.cores.is_empty() {
        "gives no core"
    } else {
        return Ok(());
    };
    Err(format!("node {name} {problem}"))
}

/// Whether a placement is enough for an alternative.
fn check_amounts(state: &State, alternative: &Alternative, placed: &ComponentPlacement) -> Result<(), String> {
    let mut least = Minimum::default();
    for request in &alternative.requests {
        let minimum = requests::minimum(request, state.settings());
        // Requests that are met together may share nodes, but never cores, GPUs or memory.
        least.nodes = least.nodes.max(minimum.nodes);
        least.tasks = least.tasks.saturating_add(minimum.tasks);
        least.cores = least.cores.saturating_add(minimum.cores);
        least.gpus = least.gpus.saturating_add(minimum.gpus);
        least.memory_bytes = least.memory_bytes.saturating_add(minimum.memory_bytes);
        if request.sharing != Sharing::Shared && placed.shares.iter().any(|share| !share.exclusive) {
            return Err("the job wants its nodes for itself, the placement does not give them so".into());
        }
    }
    let sum =
        |of: &dyn Fn(&NodeShare) -> u64| placed.shares.iter().fold(0, |sum: u64, share| sum.saturating_add(of(share)));
    let enough = [
        ("nodes", placed.shares.len() as u64, least.nodes),
        ("tasks", sum(&|share| u64::from(share.tasks)), least.tasks),
        ("cores", sum(&|share| share.cores.len()), least.cores),
        ("GPUs", sum(&|share| share.gpus.len()), least.gpus),
        ("bytes of memory", sum(&|share| share.memory_bytes), least.memory_bytes),
    ];
    match enough.iter().find(|(_, given, wanted)| given < wanted) {
        Some((what, given, wanted)) => Err(format!("{given} {what} are given, the job asks for {wanted}")),
        None => Ok(()),
    }
}
