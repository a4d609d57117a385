//! The tasks of a job that is a list of them: what each is like, and what has become of it.

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

/// A service that ends sooner than this after its start is not started again before, so that one that cannot run does not
/// fill the log.
const SHORTEST_SERVICE_SECONDS: i64 = 1;

/// The tasks of a job and their states. Their launches stay in the log. Instances that wait or have ended are counted
/// or kept as ranges, so that a sweep of a million is no larger than one of two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskBook {
    /// The record that has the list.
    pub listed: Sequence,
    /// The unit that sizes count.
    pub unit: SizeUnit,
    /// The least that the job runs on.
    pub min: u32,
    /// The greatest that it grows to.
    pub max: u32,
    /// Whether it keeps its resources when no task is left.
    pub until_cancelled: bool,
    /// Whether the first failed task stops it.
    pub fail_on_task_failure: bool,
    /// Whether tasks that wait for one that failed fail.
    pub fail_dependents: bool,
    /// Whether a job of higher priority may take its resources.
    pub preemptable: bool,
    /// The tasks, in their order.
    pub tasks: Vec<Task>,
    /// How the first task that failed did.
    pub failure: Option<Outcome>,
    /// Instances that run, by the step that each is.
    pub running: BTreeMap<StepId, RunningTask>,
    /// For each node the cores that they have there; no entry is 0.
    pub used: BTreeMap<NodeId, u32>,
    /// Nodes of the run whose preparation has ended well.
    pub prepared: BTreeSet<NodeId>,
    /// Nodes whose preparation has failed, in this run or one before: no task runs there, a run gives them back, and the job
    /// does not get them again unless somebody asks for all of it to run again (HPC-J-22).
    pub unusable: BTreeSet<NodeId>,
    /// Nodes of the run whose release has ended, in whatever way.
    pub released: BTreeSet<NodeId>,
    /// Nodes that have joined the run after its start, with when.
    pub joined: BTreeMap<NodeId, Timestamp>,
    /// Nodes that the run has left and that have not reported the end of its part there.
    pub leaving: BTreeSet<NodeId>,
    /// Nodes of which the run has had another share before.
    pub resized: BTreeSet<NodeId>,
    /// The resources that it gives up when no task uses them any longer, and why.
    pub shrinking: Option<(Arc<Placement>, ShrinkReason)>,
    /// If no tasks start any longer but those that release nodes: why, and whether running ones may end by
    /// themselves.
    pub ending: Option<Ending>,
}

/// The run ends when its tasks have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// Why.
    pub reason: StopReason,
    /// Whether tasks that run may end by themselves.
    pub is_graceful: bool,
}

/// An instance of a task that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningTask {
    /// Which.
    pub instance: TaskInstance,
    /// How many cores it has on each of its nodes; its process is on the first.
    pub cores: Vec<(NodeId, u32)>,
    /// Since when.
    pub started: Timestamp,
    /// Whether its node is ordered to stop it.
    pub is_stopping: bool,
}

/// The use that a running job has for more resources, and the resources that it could do without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elastic {
    /// The unit that sizes count.
    pub unit: SizeUnit,
    /// The least that the job runs on.
    pub min: u32,
    /// The greatest that it grows to.
    pub max: u32,
    /// Its holdings, without those that it has to give up.
    pub current: u32,
    /// How many more units its queued tasks can use now: they fit nowhere in what it holds (HPC-S-09).
    pub wanted: u32,
    /// How many units no task of it uses or will use: it can give them up, and keeps its least (HPC-S-10).
    pub idle: u32,
    /// Whether a job of higher priority may take its resources.
    pub preemptable: bool,
}

impl TaskBook {
    /// The tasks of a list, none of which has run. `listed` is the record that has the list.
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

    /// The job asks for another size: that of the deepest level with a range of what it asks for first (HPC-J-13).
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
    /// that have ended well are not run again.
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

    /// The task of a kind that there is at most one of, with its place in the list.
    pub(crate) fn of_kind(&self, kind: TaskKind) -> Option<u32> {
        self.tasks.iter().zip(0..).find(|(task, _)| task.kind == kind).map(|(_, place)| place)
    }

    /// Whether the tasks that one must come after have ended.
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

    /// An instance has ended. Whether it was a preparation that failed. `stopping` is why its whole run is being stopped, if
    /// it is: then it has not failed, any more than one that was stopped singly (HPC-S-13).
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
            // Nothing is known of the node then.
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

    /// Tasks that wait for one that failed, directly or not, never run, if the job wants it so.
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

    /// The instances that use more of a node than is left of it are stopped, those started last first.
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

    /// The run is ending: its tasks are stopped unless they may end by themselves, which a service never does.
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

    /// The run is over: instances that ran are put back, or have failed if they must not run twice, unless somebody
    /// asked for it all to run again. Finished instances stay so (HPC-S-13).
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

    /// Somebody asked for the job to run again: what failed does.
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

    /// How many of a node's cores are being given up.
    pub(crate) fn given_up(&self, node: NodeId) -> u32 {
        let shares = self.shrinking.iter().flat_map(|(removed, _)| removed.shares());
        shares.filter(|share| share.node == node).fold(0, |sum: u32, share| sum.saturating_add(count(&share.cores)))
    }
}

/// How a task that failed makes its job fail.
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

/// How many numbers are in a set.
pub(crate) fn count(set: &IndexSet) -> u32 {
    u32::try_from(set.len()).unwrap_or(u32::MAX)
}
