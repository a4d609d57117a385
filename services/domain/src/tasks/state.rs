//! The tasks of a list, and their progress.

use crate::tasks::Task;
use muster_schemas::{
    NodeId, Sequence, StepId, Timestamp,
    event::{EndCause, NodeExit, ShrinkReason, StopReason},
    job::Outcome,
    resources::{Alternative, Count, IndexSet, Level, Placement},
    tasks::{SizeUnit, TaskInstance, TaskKind, TaskList},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A service that ends sooner than this after its start is restarted only then, so that a service that cannot run does not
/// fill the log.
const SHORTEST_SERVICE_SECONDS: i64 = 1;

/// The tasks of a job and their states. Their launches stay in the log. Waiting and finished instances are counted or
/// stored as ranges, so that a sweep of a million is no larger than one of two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskBook {
    /// The record with the list.
    pub listed: Sequence,
    /// The unit of sizes.
    pub unit: SizeUnit,
    /// The minimum size of the job.
    pub min: u32,
    /// The maximum size of the job.
    pub max: u32,
    /// Whether it keeps its resources when no task is left.
    pub until_cancelled: bool,
    /// Whether the first failed task stops the job.
    pub fail_on_task_failure: bool,
    /// Whether tasks that wait for a failed one fail.
    pub fail_dependents: bool,
    /// Whether a job of higher priority may take its resources.
    pub preemptable: bool,
    /// The tasks, in order.
    pub tasks: Vec<Task>,
    /// The outcome of the first task that failed.
    pub failure: Option<Outcome>,
    /// Running instances, by step.
    pub running: BTreeMap<StepId, RunningTask>,
    /// The number of cores they have on each node, never 0.
    pub used: BTreeMap<NodeId, u32>,
    /// Nodes of the run that were prepared successfully.
    pub prepared: BTreeSet<NodeId>,
    /// Nodes that could not be prepared, in this run or an earlier one: no task runs there, a run gives them back, and
    /// the job does not get them again until it is requeued on request (HPC-J-22).
    pub unusable: BTreeSet<NodeId>,
    /// Nodes of the run whose release has ended, with any result.
    pub released: BTreeSet<NodeId>,
    /// Nodes that joined the run after its start, with the time.
    pub joined: BTreeMap<NodeId, Timestamp>,
    /// Nodes that the run has left without a report yet that its part there has ended.
    pub leaving: BTreeSet<NodeId>,
    /// Nodes on which the run had a different share before.
    pub resized: BTreeSet<NodeId>,
    /// The resources that it gives up once no task uses them any longer, and why.
    pub shrinking: Option<(Arc<Placement>, ShrinkReason)>,
    /// Set once only tasks that release nodes may start: why, and whether running tasks may end by themselves.
    pub ending: Option<Ending>,
}

/// An end of the run that waits for its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// Why.
    pub reason: StopReason,
    /// Whether running tasks may end by themselves.
    pub is_graceful: bool,
}

/// A running instance of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningTask {
    /// The task and the index of the instance.
    pub instance: TaskInstance,
    /// The number of its cores on each of its nodes; its process is on the first.
    pub cores: Vec<(NodeId, u32)>,
    /// When it was started.
    pub started: Timestamp,
    /// Whether its node has orders to stop it.
    pub is_stopping: bool,
}

/// How many more resources a running job can use, or could give up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elastic {
    /// The unit of sizes.
    pub unit: SizeUnit,
    /// The minimum size of the job.
    pub min: u32,
    /// The maximum size of the job.
    pub max: u32,
    /// Its size, without what it has to give up.
    pub current: u32,
    /// How many more units its queued tasks can use now: there is no room for them in what it holds (HPC-S-09).
    pub wanted: u32,
    /// How many units its tasks do not use and never will: it can give them up and keep its minimum (HPC-S-10).
    pub idle: u32,
    /// Whether a job of higher priority may take its resources.
    pub preemptable: bool,
}

impl TaskBook {
    /// The tasks of a list, none of which has run. `listed` is the record with the list.
    pub fn of(list: &TaskList, listed: Sequence) -> Self {
        Self {
            listed,
            unit: list.unit,
            min: list.min,
            max: list.max,
            until_cancelled: list.until_cancelled,
            fail_on_task_failure: list.fail_on_task_failure,
            fail_dependents: list.fail_dependents,
            preemptable: list.preemptable,
            tasks: list.tasks.iter().map(Task::of).collect(),
            ..Self::default()
        }
    }

    /// The job asks for another size: that of the deepest level with a range in its first request (HPC-J-13).
    pub(crate) fn resize(&mut self, alternatives: &[Alternative]) {
        let request = alternatives.first().and_then(|alternative| alternative.requests.first());
        let ranges = request.into_iter().flat_map(|request| request.path.iter().rev());
        let mut sizes = ranges.filter_map(|part| match (&part.level, part.count) {
            (Level::Node, Count::Range { min, max }) => Some((SizeUnit::Node, min, max)),
            (Level::Socket, Count::Range { min, max }) => Some((SizeUnit::Socket, min, max)),
            (Level::Core, Count::Range { min, max }) => Some((SizeUnit::Core, min, max)),
            _ => None,
        });
        if let Some(size) = sizes.next() {
            (self.unit, self.min, self.max) = size;
        }
    }

    /// This book with the progress of another one, if their tasks are the same: the job was checked again, and tasks
    /// that have succeeded are not run again.
    pub(crate) fn going_on_from(self, before: Option<&Self>) -> Self {
        let same = |(one, other): (&Task, &Task)| one.kind == other.kind;
        let before = before
            .filter(|before| before.tasks.len() == self.tasks.len() && before.tasks.iter().zip(&self.tasks).all(same));
        let Some(before) = before else { return self };
        let carried = |(new, old): (Task, &Task)| Task {
            next: old.next,
            again: old.again.clone(),
            finished: old.finished,
            failed: old.failed.clone(),
            is_doomed: old.is_doomed,
            ..new
        };
        let tasks = self.tasks.into_iter().zip(&before.tasks).map(carried).collect();
        Self { tasks, failure: before.failure.clone(), ..self }
    }

    /// The position of the task of a kind that occurs at most once.
    pub(crate) fn of_kind(&self, kind: TaskKind) -> Option<u32> {
        self.tasks.iter().zip(0..).find(|(task, _)| task.kind == kind).map(|(_, place)| place)
    }

    /// Whether the tasks that this one must follow have ended.
    pub(crate) fn is_ready(&self, task: &Task) -> bool {
        let is_over = |place: &u32| self.tasks.get(*place as usize).is_none_or(Task::is_over);
        task.after.iter().all(is_over)
    }

    /// Whether no task is left that runs by itself.
    pub fn is_done(&self) -> bool {
        self.tasks.iter().filter(|task| task.is_work()).all(Task::is_over)
    }

    /// An instance was started.
    pub(crate) fn began(&mut self, step: StepId, instance: TaskInstance, cores: Vec<(NodeId, u32)>, now: Timestamp) {
        let Some(task) = self.tasks.get_mut(instance.task as usize) else { return };
        task.began(instance.instance);
        for (node, count) in &cores {
            *self.used.entry(*node).or_default() += count;
        }
        self.running.insert(step, RunningTask { instance, cores, started: now, is_stopping: false });
    }

    /// An instance has ended. Returns whether it was a preparation that failed. `stopping` is the reason if the whole
    /// run is being stopped: the instance has then not failed, just like one that was stopped individually (HPC-S-13).
    pub(crate) fn ended(
        &mut self,
        step: StepId,
        exit: Option<&NodeExit>,
        stopping: Option<StopReason>,
        now: Timestamp,
    ) -> bool {
        let Some(ended) = self.running.remove(&step) else { return false };
        self.give_back(&ended);
        let was_stopped = ended.is_stopping || stopping.is_some();
        let is_lost = exit.is_some_and(|exit| matches!(exit.cause, EndCause::Lost(_)));
        let TaskInstance { task: place, instance } = ended.instance;
        let Some(task) = self.tasks.get_mut(place as usize) else { return false };
        task.running = task.running.saturating_sub(1);
        let node = ended.cores.first().map(|(node, _)| *node);
        let is_success = task.is_success(exit.and_then(|exit| exit.status));
        match task.kind {
            // Nothing is known about the node then.
            TaskKind::NodePrep if (was_stopped || is_lost) && !is_success => {}
            TaskKind::NodePrep => {
                let nodes = if is_success { &mut self.prepared } else { &mut self.unusable };
                nodes.extend(node);
                if !is_success {
                    task.failed.insert(instance);
                }
                return !is_success;
            }
            TaskKind::NodeRelease => self.released.extend(node),
            TaskKind::Service => {
                let earliest = ended.started.plus_seconds(SHORTEST_SERVICE_SECONDS);
                task.not_before = (earliest > now).then_some(earliest).max(task.not_before);
            }
            TaskKind::Basic | TaskKind::Sweep { .. } if is_success => task.finished = task.finished.saturating_add(1),
            TaskKind::Basic | TaskKind::Sweep { .. } if was_stopped && task.runs_again(stopping) => {
                task.put_back(instance, true);
            }
            TaskKind::Basic | TaskKind::Sweep { .. } => {
                task.failed.insert(instance);
                self.failure.get_or_insert_with(|| failure(place, exit));
                self.doom_dependents(place);
            }
        }
        false
    }

    fn give_back(&mut self, ended: &RunningTask) {
        for (node, count) in &ended.cores {
            if let Some(used) = self.used.get_mut(node) {
                *used = used.saturating_sub(*count);
                if *used == 0 {
                    self.used.remove(node);
                }
            }
        }
    }

    /// Tasks that wait for a failed one, directly or not, never run, if the job is set so.
    fn doom_dependents(&mut self, failed: u32) {
        if !self.fail_dependents {
            return;
        }
        let mut doomed = vec![failed];
        while let Some(before) = doomed.pop() {
            for (task, place) in self.tasks.iter_mut().zip(0..) {
                if !task.is_doomed && task.after.contains(&before) {
                    task.is_doomed = true;
                    doomed.push(place);
                }
            }
        }
    }

    /// No node could be prepared.
    pub(crate) fn cannot_run(&mut self, exit: Option<&NodeExit>) {
        let prep = self.of_kind(TaskKind::NodePrep).unwrap_or_default();
        self.failure.get_or_insert_with(|| failure(prep, exit));
    }

    /// Stops instances that use more cores of a node than will be left, the last started first.
    pub(crate) fn stop_beyond(&mut self, node: NodeId, left: u32) {
        let staying = self.running.values().filter(|task| !task.is_stopping);
        let mut used: u32 = staying.flat_map(|task| &task.cores).filter(|(on, _)| *on == node).map(|(_, n)| n).sum();
        for task in self.running.values_mut().rev().filter(|task| !task.is_stopping) {
            let here: u32 = task.cores.iter().filter(|(on, _)| *on == node).map(|(_, count)| count).sum();
            if used > left && here > 0 {
                task.is_stopping = true;
                used -= here;
            }
        }
    }

    /// The run is ending: its tasks are stopped unless they may end by themselves, which services never do.
    pub(crate) fn end(&mut self, ending: Ending) {
        self.ending = Some(ending);
        for running in self.running.values_mut() {
            let kind = self.tasks.get(running.instance.task as usize).map(|task| task.kind);
            running.is_stopping |= match kind {
                Some(TaskKind::NodeRelease) => false,
                Some(TaskKind::Service) => true,
                _ => !ending.is_graceful,
            };
        }
    }

    /// The run is over: running instances are put back, or have failed if they must not run twice, unless the job was
    /// requeued on request. Finished instances stay so (HPC-S-13).
    pub(crate) fn run_over(&mut self, outcome: &Outcome) {
        for (_, RunningTask { instance, .. }) in std::mem::take(&mut self.running) {
            let Some(task) = self.tasks.get_mut(instance.task as usize) else { continue };
            task.running = task.running.saturating_sub(1);
            if !matches!(task.kind, TaskKind::Basic | TaskKind::Sweep { .. }) {
                continue;
            }
            let reason = (*outcome == Outcome::Requeued).then_some(StopReason::Requeued);
            let runs_again = task.runs_again(reason);
            task.put_back(instance.instance, runs_again);
            if !runs_again {
                self.failure.get_or_insert_with(|| failure(instance.task, None));
                self.doom_dependents(instance.task);
            }
        }
        self.tasks.iter_mut().for_each(|task| task.not_before = None);
        self.used.clear();
        self.prepared.clear();
        self.released.clear();
        self.joined.clear();
        self.leaving.clear();
        self.resized.clear();
        self.shrinking = None;
        self.ending = None;
    }

    /// The job was requeued on request: failed instances run again.
    pub(crate) fn begin_again(&mut self) {
        self.failure = None;
        self.unusable.clear();
        for task in &mut self.tasks {
            let failed = std::mem::take(&mut task.failed);
            if task.is_work() {
                task.again = task.again.union(&failed);
            }
            task.is_doomed = false;
        }
    }

    /// The number of a node's cores that are being given up.
    pub(crate) fn given_up(&self, node: NodeId) -> u32 {
        let shares = self.shrinking.iter().flat_map(|(removed, _)| removed.shares());
        shares.filter(|share| share.node == node).fold(0, |sum: u32, share| sum.saturating_add(count(&share.cores)))
    }
}

/// The outcome of a job because of a failed task.
fn failure(place: u32, exit: Option<&NodeExit>) -> Outcome {
    let number = place + 1;
    match exit {
        Some(NodeExit { cause: EndCause::LaunchFailed(why), .. }) => {
            Outcome::LaunchFailed(format!("task {number}: {why}"))
        }
        Some(NodeExit { status: Some(status), .. }) => Outcome::Failed(*status),
        _ => Outcome::LaunchFailed(format!("task {number}: nothing is known of its end")),
    }
}

/// The number of elements in a set.
pub(crate) fn count(set: &IndexSet) -> u32 {
    u32::try_from(set.len()).unwrap_or(u32::MAX)
}
