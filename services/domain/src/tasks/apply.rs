//! Tasks of lists, and runs that grow and shrink.

use crate::{
    index::TaskKeys,
    runs::{Part, PartState, Run},
    state::State,
    steps::PartProgress,
    tasks::{self, Ending, TaskBook, outlook},
    unapplied::no_arm,
};
use muster_schemas::{
    JobId, RunId, Sequence, StepId, Timestamp,
    event::{Event, NodeTasks, Record, ShrinkReason},
    resources::{NodeShare, Placement},
    tasks::TaskInstance,
};
use std::sync::Arc;

impl State {
    pub(crate) fn tasks_changed(&mut self, record: &Record) {
        match &record.event {
            Event::RunGrown { job, run, added } => self.run_grown(*job, *run, added),
            Event::RunShrinking { job, run, removed, reason } => self.run_shrinking(*job, *run, removed, *reason),
            Event::RunShrunk { job, run, removed } => self.run_shrunk(*job, *run, removed),
            Event::TaskStarted { job, run, step, instance, cores } => {
                self.task_started(*job, *run, *step, *instance, cores);
            }
            Event::TasksStopping { job, reason, is_graceful, .. } => {
                let ending = Ending { reason: *reason, is_graceful: *is_graceful };
                self.change_tasks(*job, |tasks| tasks.end(ending));
            }
            event => no_arm(event),
        }
    }

    /// Changes the tasks of a job, if it has any. The keys of the job do not depend on them.
    fn change_tasks(&mut self, id: JobId, change: impl FnOnce(&mut TaskBook)) {
        if let Some(tasks) = self.jobs.get_mut(&id).and_then(|job| job.tasks.as_deref_mut()) {
            change(tasks);
        }
    }

    fn run_grown(&mut self, id: JobId, run: RunId, added: &Placement) {
        if self.run(run).is_none() {
            return;
        }
        added.shares().for_each(|share| self.take_share(id, run, share));
        let (now, since) = (self.time, self.sequence);
        let (mut resized, mut joined) = (Vec::new(), Vec::new());
        self.change_run(run, |run| {
            for share in added.shares() {
                let nodes = if run.part(share.node).is_some() { &mut resized } else { &mut joined };
                nodes.push(share.node);
                add_share(run, share, since);
            }
        });
        self.change_tasks(id, |tasks| {
            tasks.resized.extend(resized);
            tasks.joined.extend(joined.into_iter().map(|node| (node, now)));
        });
    }

    fn run_shrinking(&mut self, id: JobId, run: RunId, removed: &Arc<Placement>, reason: ShrinkReason) {
        if reason == ShrinkReason::Asked {
            self.change_run(run, |run| run.giving_up.extend(removed.shares().map(|share| share.node)));
            return;
        }
        let held = |share: &NodeShare| {
            let held = self.run(run).and_then(|run| run.share(share.node));
            (share.node, held.map_or(0, |held| tasks::state::count(&held.cores.difference(&share.cores))))
        };
        let left: Vec<_> = removed.shares().map(held).collect();
        self.change_tasks(id, |tasks| {
            tasks.shrinking = Some((removed.clone(), reason));
            if reason.stops_tasks() {
                left.into_iter().for_each(|(node, left)| tasks.stop_beyond(node, left));
            }
        });
    }

    fn run_shrunk(&mut self, id: JobId, run: RunId, removed: &Placement) {
        for (component, share) in removed.shares_by_component() {
            let Some(of_run) = self.run(run) else { return };
            let Some(held) = of_run.share_of(share.node, component) else { continue };
            let keeps_rest = !share.cores.contains_all(&held.cores);
            let how = (of_run.has_lent(), keeps_rest || of_run.is_shared(share.node));
            let is_held = require_held(run, held, share, keeps_rest);
            self.require(is_held);
            self.give_back_part(run, share, how);
            self.change_run(run, |run| remove_share(run, component, share, keeps_rest));
            self.change_tasks(id, |tasks| gave_up(tasks, share, keeps_rest));
        }
        self.note_freed();
    }

    fn task_started(&mut self, id: JobId, run: RunId, step: StepId, instance: TaskInstance, cores: &[NodeTasks]) {
        let now = self.time;
        // Its one process is on its first node; on the others it only has cores.
        let first = cores.first().map(|part| PartProgress { node: part.node, component: 0, tasks: 1, exit: None });
        self.step_started(run, step, first.into_iter());
        let cores = cores.iter().map(|part| (part.node, part.tasks)).collect();
        self.change_tasks(id, |tasks| tasks.began(step, instance, cores, now));
    }

    pub(crate) fn step_ended(&mut self, id: JobId, run: RunId, step: StepId, now: Timestamp) {
        let mut exit = None;
        self.forget_step(run, step);
        self.change_run(run, |run| {
            exit = run.steps.remove(&step).and_then(|step| step.parts.into_iter().next()?.exit);
        });
        let Some(run) = self.runs.get(&run) else { return };
        let Some(tasks) = self.jobs.get_mut(&id).and_then(|job| job.tasks.as_deref_mut()) else { return };
        let prep_failed = tasks.ended(step, exit.as_ref(), run.stopping, now);
        if prep_failed && run.nodes().all(|node| tasks.unusable.contains(&node)) {
            tasks.cannot_run(exit.as_ref());
        }
    }

    /// The part of a run ended on a node that the run has left.
    pub(crate) fn left_part_ended(&mut self, run: RunId, node: muster_schemas::NodeId) {
        let Some(id) = self.run(run).filter(|run| run.part(node).is_none()).map(|run| run.job) else { return };
        self.change_tasks(id, |tasks| {
            tasks.leaving.remove(&node);
        });
    }

    /// Updates the index of running lists of tasks, which may depend on anything that the record changed.
    pub(crate) fn refresh_tasks(&mut self, record: &Record) {
        if self.index.elastic.is_empty() && self.index.task_keys.is_empty() {
            return;
        }
        let event = &record.event;
        match event {
            Event::SchedulingSet { .. } | Event::NodeChanged { .. } => {
                let all: Vec<JobId> = self.index.elastic.iter().copied().collect();
                all.into_iter().for_each(|id| self.refresh_tasks_of(id));
            }
            _ => {
                if let Some(id) = event.job() {
                    self.refresh_tasks_of(id);
                }
            }
        }
    }

    fn refresh_tasks_of(&mut self, id: JobId) {
        let keys = if self.index.elastic.contains(&id) { task_keys(self, id) } else { TaskKeys::default() };
        self.index.move_tasks(id, keys);
    }
}

/// The keys of a running list of tasks.
pub(crate) fn task_keys(state: &State, id: JobId) -> TaskKeys {
    let next = outlook::outlook(state, id, Timestamp::MIN, 1);
    let is_ready = !next.events.is_empty();
    TaskKeys { is_ready, due: next.later.filter(|_| !is_ready) }
}

/// A run must have what it gives back, and with its last core on a node it gives back everything there.
fn require_held(run: RunId, held: &NodeShare, share: &NodeShare, keeps_rest: bool) -> Result<(), String> {
    let is_part = held.cores.contains_all(&share.cores)
        && held.gpus.contains_all(&share.gpus)
        && share.memory_bytes <= held.memory_bytes;
    let is_all = (&held.gpus, held.memory_bytes) == (&share.gpus, share.memory_bytes);
    if is_part && (keeps_rest || is_all) {
        return Ok(());
    }
    let text = |share: &NodeShare| format!("cores {}, GPUs {}, {} bytes", share.cores, share.gpus, share.memory_bytes);
    Err(format!("node {}: run {run} gives back {}, and has {}", share.node, text(share), text(held)))
}

fn add_share(run: &mut Run, added: &NodeShare, since: Sequence) {
    let placement = Arc::make_mut(&mut run.placement);
    if let Some(held) =
        placement.components.iter_mut().flat_map(|placed| &mut placed.shares).find(|s| s.node == added.node)
    {
        held.cores = held.cores.union(&added.cores);
        held.gpus = held.gpus.union(&added.gpus);
        held.memory_bytes = held.memory_bytes.saturating_add(added.memory_bytes);
        held.exclusive |= added.exclusive;
        return;
    }
    // A list of tasks has one component.
    let Some(placed) = placement.components.last_mut() else { return };
    placed.shares.push(added.clone());
    let component = u32::try_from(placement.components.len() - 1).unwrap_or(0);
    run.parts.push(Part { node: added.node, component, since, state: PartState::Launching });
}

fn remove_share(run: &mut Run, component: u32, removed: &NodeShare, keeps_rest: bool) {
    if run.giving_up.remove(&removed.node) {
        let usage = run.part_of(removed.node, component).and_then(|part| Some(part.exit()?.usage));
        run.left_usage = run.left_usage.plus(usage.unwrap_or_default());
    }
    let placement = Arc::make_mut(&mut run.placement);
    let Some(placed) = placement.components.get_mut(component as usize) else { return };
    if keeps_rest {
        for share in placed.shares.iter_mut().filter(|share| share.node == removed.node) {
            share.cores = share.cores.difference(&removed.cores);
            share.gpus = share.gpus.difference(&removed.gpus);
            share.memory_bytes = share.memory_bytes.saturating_sub(removed.memory_bytes);
        }
        return;
    }
    placed.shares.retain(|share| share.node != removed.node);
    if let Some(at) = run.position_of(removed.node, component) {
        run.parts.remove(at);
    }
}

fn gave_up(tasks: &mut TaskBook, share: &NodeShare, keeps_rest: bool) {
    if keeps_rest {
        tasks.resized.insert(share.node);
    } else {
        tasks.leaving.insert(share.node);
        tasks.joined.remove(&share.node);
        for nodes in [&mut tasks.prepared, &mut tasks.released, &mut tasks.resized] {
            nodes.remove(&share.node);
        }
    }
    if let Some((removed, _)) = &mut tasks.shrinking {
        let removed = Arc::make_mut(removed);
        for placed in &mut removed.components {
            placed.shares.retain(|gone| gone.node != share.node);
        }
        if removed.shares().next().is_none() {
            tasks.shrinking = None;
        }
    }
}
