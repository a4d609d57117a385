//! The next steps of a running list of tasks: which tasks start, what it gives up, when it ends. Decided by ticks,
//! which are due whenever there is work.

use crate::{
    jobs::Job,
    runs::{Part, Run, walltime::walltime},
    state::State,
    tasks::{
        Ending, Task, TaskBook,
        room::{Room, kept_units},
        state::count,
    },
};
use muster_schemas::{
    JobId, NodeId, StepId, Timestamp,
    event::{Event, NodeTasks, ShrinkReason, StopReason},
    filter::JobWarning,
    resources::{ComponentPlacement, NodeShare, Placement},
    tasks::{TaskInstance, TaskKind},
};
use std::sync::Arc;

/// How long tasks that release nodes may take unless the settings say otherwise (HPC-C-09).
const RELEASE_SECONDS: u32 = 10;

/// The next steps of a job.
#[derive(Debug, Default)]
pub(crate) struct Outlook {
    /// The events that are due now.
    pub(crate) events: Vec<Event>,
    /// If there are none: when there may be.
    pub(crate) later: Option<Timestamp>,
}

/// The next steps of a job at a time, up to a maximum of events. None if it does not run, or is stopped or suspended.
pub(crate) fn outlook(state: &State, job: JobId, at: Timestamp, most: usize) -> Outlook {
    let Some((job, book, run)) = state.task_run(job) else { return Outlook::default() };
    if run.started.is_none() || run.stopping.is_some() || run.is_suspended() {
        return Outlook::default();
    }
    let mut next = Next { state, job, book, run, at, most, step: run.next_step, outlook: Outlook::default() };
    match book.ending {
        Some(ending) => next.wind_down(ending),
        None => next.go_on(),
    }
    next.outlook
}

/// How long tasks that release nodes may take (HPC-J-12).
pub(crate) fn release_seconds(state: &State) -> u32 {
    state.scheduling().release_timeout_seconds.unwrap_or(RELEASE_SECONDS)
}

struct Next<'a> {
    state: &'a State,
    job: &'a Job,
    book: &'a TaskBook,
    run: &'a Run,
    at: Timestamp,
    most: usize,
    /// The number of the next step.
    step: StepId,
    outlook: Outlook,
}

impl Next<'_> {
    fn go_on(&mut self) {
        if self.book.failure.is_some() && (self.book.fail_on_task_failure || !self.has_usable_node()) {
            return self.end(StopReason::TasksEnded);
        }
        match self.release_time() {
            Some(time) if time <= self.at => return self.end(StopReason::Walltime),
            time => self.due_later(time),
        }
        if let Some(event) = self.preempted() {
            return self.push(event);
        }
        self.give_back_unusable();
        self.prepare_nodes();
        self.start_work();
        self.give_up();
        if !self.outlook.events.is_empty() || !self.book.running.is_empty() {
            return;
        }
        if self.book.is_done() && !self.book.until_cancelled {
            self.end(StopReason::TasksEnded);
        } else if !self.has_usable_node() || self.is_too_small() {
            // The remaining nodes could not be prepared, or are too few: the job waits for others.
            self.stop(StopReason::Preempted);
        }
    }

    /// Gives back nodes that could not be prepared, and warns about them (HPC-J-22). The last node stays until the run
    /// ends.
    fn give_back_unusable(&mut self) {
        let (state, book, run) = (self.state, self.book, self.run);
        if book.shrinking.is_some() || !self.has_usable_node() {
            return;
        }
        let is_free = |share: &&NodeShare| book.unusable.contains(&share.node) && self.uses(share.node) == 0;
        let shares: Vec<NodeShare> = run.placement.shares().filter(is_free).cloned().collect();
        if shares.is_empty() {
            return;
        }
        let removed = self.placement_of(shares.clone());
        self.push(Event::RunShrunk { job: self.job.id, run: run.id, removed });
        for share in &shares {
            let node = state.node_name(share.node);
            let text =
                format!("node {node} could not be prepared: the job has given it back and does not get it again");
            let warning = Arc::new(JobWarning { code: "NodePreparationFailed".into(), text });
            self.push(Event::JobWarned { job: self.job.id, warning });
        }
    }

    /// Whether no waiting task can run on what the run has, which is less than its minimum since nodes could not be
    /// prepared. No task of it runs.
    fn is_too_small(&self) -> bool {
        let (book, kept) = (self.book, kept_units(self.state, self.book, self.run));
        let is_ready = |node: NodeId| self.run.part(node).is_some_and(Part::is_up);
        let mut waiting = book.tasks.iter().filter(|task| task.is_work() && task.waiting() > 0 && book.is_ready(task));
        kept < book.min && !book.is_done() && self.run.nodes().all(is_ready) && waiting.all(|task| task.min > kept)
    }

    fn placement_of(&self, shares: Vec<NodeShare>) -> Arc<Placement> {
        let alternative = self.run.placement.components.first().map_or(0, |placed| placed.alternative);
        Arc::new(Placement { components: vec![ComponentPlacement { alternative, shares }] })
    }

    /// Starts only tasks that release nodes, each once nothing else runs on its node.
    fn wind_down(&mut self, ending: Ending) {
        if let Some(release) = self.book.of_kind(TaskKind::NodeRelease) {
            let free: Vec<NodeId> =
                self.run.parts.iter().filter(|part| self.is_to_release(part)).map(|part| part.node).collect();
            free.into_iter().for_each(|node| self.start_on_node(release, node));
        }
        self.give_up();
        if self.outlook.events.is_empty() && self.book.running.is_empty() {
            self.stop(ending.reason);
        }
    }

    fn push(&mut self, event: Event) {
        if self.outlook.events.len() < self.most {
            self.outlook.events.push(event);
        }
    }

    fn is_full(&self) -> bool {
        self.outlook.events.len() >= self.most
    }

    fn due_later(&mut self, time: Option<Timestamp>) {
        self.outlook.later = self.outlook.later.into_iter().chain(time).min();
    }

    fn stop(&mut self, reason: StopReason) {
        self.push(Event::RunStopping { job: self.job.id, run: self.run.id, reason, grace_seconds: None });
    }

    /// Ends the run; if there is a task to release nodes, it runs first.
    fn end(&mut self, reason: StopReason) {
        if self.book.of_kind(TaskKind::NodeRelease).is_none() {
            return self.stop(reason);
        }
        self.push(Event::TasksStopping { job: self.job.id, run: self.run.id, reason, is_graceful: false });
    }

    fn has_usable_node(&self) -> bool {
        self.run.nodes().any(|node| !self.book.unusable.contains(&node))
    }

    /// When tasks must make room for those that release nodes, so that these end within the walltime.
    fn release_time(&self) -> Option<Timestamp> {
        self.book.of_kind(TaskKind::NodeRelease)?;
        let walltime = i64::try_from(walltime(self.job, &self.run.placement, 0)?).unwrap_or(i64::MAX);
        let seconds = walltime.saturating_sub(i64::from(release_seconds(self.state))).max(0);
        Some(self.run.started?.plus_seconds(seconds))
    }

    /// A run left with less than its minimum ends as a whole, and its job is queued again (HPC-S-12).
    fn preempted(&self) -> Option<Event> {
        let (_, reason) = self.book.shrinking.as_ref()?;
        if kept_units(self.state, self.book, self.run) >= self.book.min {
            return None;
        }
        let (job, run) = (self.job.id, self.run.id);
        match reason {
            ShrinkReason::Idle | ShrinkReason::Rebalanced | ShrinkReason::TasksRebalanced | ShrinkReason::Asked => None,
            ShrinkReason::Preempted => {
                Some(Event::TasksStopping { job, run, reason: StopReason::Preempted, is_graceful: true })
            }
            ShrinkReason::TasksPreempted => {
                Some(Event::RunStopping { job, run, reason: StopReason::Preempted, grace_seconds: None })
            }
        }
    }

    fn start(&mut self, instance: TaskInstance, cores: Vec<NodeTasks>) {
        let (job, run, step) = (self.job.id, self.run.id, self.step);
        self.push(Event::TaskStarted { job, run, step, instance, cores });
        self.step = StepId(step.0.saturating_add(1));
    }

    /// Starts a task that has a node to itself.
    fn start_on_node(&mut self, place: u32, node: NodeId) {
        let before = self.book.tasks.get(place as usize).map_or(0, |task| task.next);
        let instance =
            TaskInstance { task: place, instance: before.saturating_add(self.step.0 - self.run.next_step.0) };
        let all = self.run.share(node).map_or(1, |share| count(&share.cores));
        // Cores that will be given up go as soon as nothing uses them; a node that will be given up entirely goes after
        // this task.
        let staying = Some(all.saturating_sub(self.book.given_up(node))).filter(|staying| *staying > 0);
        self.start(instance, vec![NodeTasks { node, tasks: staying.unwrap_or(all) }]);
    }

    fn uses(&self, node: NodeId) -> u32 {
        self.book.used.get(&node).copied().unwrap_or(0)
    }

    /// Whether a node of the run will be given up entirely.
    fn is_leaving(&self, share: &NodeShare) -> bool {
        self.book.given_up(share.node) >= count(&share.cores)
    }

    fn prepare_nodes(&mut self) {
        let Some(prep) = self.book.of_kind(TaskKind::NodePrep) else { return };
        let (run, book) = (self.run, self.book);
        for (share, part) in run.placement.shares().zip(&run.parts) {
            let is_known = book.prepared.contains(&part.node) || book.unusable.contains(&part.node);
            let is_free = part.is_up() && self.uses(part.node) == 0;
            if is_free && !is_known && !self.is_leaving(share) {
                self.start_on_node(prep, part.node);
            }
        }
    }

    /// Starts waiting tasks in order, as far as there is room.
    fn start_work(&mut self) {
        let book = self.book;
        let mut room = Room::of(self.state, book, self.run);
        let is_startable = |task: &&Task| task.is_work() && task.waiting() > 0 && book.is_ready(task);
        let mut waiting =
            book.tasks.iter().filter(is_startable).fold(0, |sum: u32, task| sum.saturating_add(task.waiting()));
        let most = kept_units(self.state, book, self.run);
        for (task, place) in book.tasks.iter().zip(0..).filter(|(task, _)| is_startable(task)) {
            let least = task.min.max(1);
            for instance in task.in_line() {
                let free = room.free();
                if free == 0 || self.is_full() {
                    return;
                }
                if free < least && least <= most {
                    return;
                }
                // A task that needs more than the job has does not hold up others: it waits for the job to grow.
                if free < least {
                    break;
                }
                if let Some(time) = task.not_before.filter(|time| *time > self.at) {
                    self.due_later(Some(time));
                    break;
                }
                let size = (free / waiting.max(1)).min(task.max).max(least);
                let Some(cores) = room.take(size) else { return };
                self.start(TaskInstance { task: place, instance }, cores);
                waiting = waiting.saturating_sub(1);
            }
        }
    }

    /// Whether the task that releases nodes has yet to run on a node that nothing else uses.
    fn is_to_release(&self, part: &Part) -> bool {
        let (book, node) = (self.book, part.node);
        let is_prepared = book.of_kind(TaskKind::NodePrep).is_none() || book.prepared.contains(&node);
        part.is_up() && is_prepared && !book.released.contains(&node) && self.uses(node) == 0
    }

    /// Gives up what the run has to give up and no task uses any longer, node by node; the last node stays until the
    /// run ends.
    fn give_up(&mut self) {
        let Some((removed, _)) = &self.book.shrinking else { return };
        let release = self.book.of_kind(TaskKind::NodeRelease);
        let mut going = Vec::new();
        for share in removed.shares() {
            let (Some(held), Some(part)) = (self.run.share(share.node), self.run.part(share.node)) else { continue };
            if self.uses(share.node) > count(&held.cores.difference(&share.cores)) {
                continue;
            }
            match release.filter(|_| self.is_leaving(held) && self.is_to_release(part)) {
                // If an end is in progress, its node is released with the others.
                Some(_) if self.book.ending.is_some() => {}
                Some(release) => self.start_on_node(release, share.node),
                None => going.push(share.clone()),
            }
        }
        let all_go = self
            .run
            .placement
            .shares()
            .all(|held| going.iter().any(|share| share.node == held.node && share.cores.contains_all(&held.cores)));
        if all_go {
            going.pop();
        }
        if !going.is_empty() {
            let removed = self.placement_of(going);
            self.push(Event::RunShrunk { job: self.job.id, run: self.run.id, removed });
        }
    }
}
