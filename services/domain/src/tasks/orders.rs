//! Orders about runs of lists of tasks: parts that hold resources, grow and shrink, and the instances of tasks in them.

use crate::{
    orders::{LaunchSketch, OrderSeed},
    runs::{
        Part, PartState, Run,
        orders::{kill_grace, launch},
    },
    state::State,
    tasks::{RunningTask, TaskBook, outlook::release_seconds},
};
use muster_schemas::{
    NodeId, PartId, RunId, StepId,
    event::StopReason,
    job::{JobSpec, Launch, Program},
    node::{LaunchOrder, OrderNode},
    resources::{IndexSet, NodeShare, Placement},
    tasks::{TaskInstance, TaskKind, TaskList, TaskSpec},
};
use std::{collections::BTreeMap, sync::Arc};

/// Orders to hold new parts of a run, and to use larger shares.
pub(crate) fn grown(state: &State, run: RunId, added: &Placement) -> Vec<(NodeId, OrderSeed)> {
    let Some(run) = state.run(run).filter(|run| run.stopping.is_none()) else { return Vec::new() };
    let parts = added.shares().filter_map(|share| run.part(share.node));
    let order = |of_run: &Part| {
        let part = state.part_id(run, of_run);
        match of_run.state {
            PartState::Launching => launch(state, run, part),
            _ => Some(OrderSeed::Resize { part }),
        }
    };
    parts.filter_map(|part| Some((part.node, order(part)?))).collect()
}

/// Where a run has left a node, its part ends while the run continues; the part of a component that was ended alone has
/// ended already.
pub(crate) fn shrunk(state: &State, id: RunId, removed: &Placement) -> Vec<(NodeId, OrderSeed)> {
    let Some(run) = state.run(id) else { return Vec::new() };
    let is_list = state.job(run.job).is_some_and(|job| job.tasks.is_some());
    let order = |component: u32, share: &NodeShare| {
        let part = state.part_id_at(run, share.node, component);
        match run.part_of(share.node, component) {
            Some(_) => OrderSeed::Resize { part },
            None if !is_list => OrderSeed::Forget { part },
            None => OrderSeed::Stop { part, reason: StopReason::PeerEnded, grace_seconds: 0 },
        }
    };
    removed.shares_by_component().map(|(component, share)| (share.node, order(component, share))).collect()
}

/// Orders to stop the instances of tasks that are being stopped, for the nodes of their processes.
pub(crate) fn task_stops(state: &State, run: RunId) -> Vec<(NodeId, OrderSeed)> {
    let Some((run, tasks)) = state.run(run).and_then(|run| Some((run, state.job(run.job)?.tasks.as_ref()?))) else {
        return Vec::new();
    };
    let stopping = tasks.running.iter().filter(|(_, task)| task.is_stopping);
    let grace_seconds = stop_grace(state, run, tasks);
    let stop = |(step, task): (&StepId, &RunningTask)| {
        let node = task.cores.first()?.0;
        Some((node, OrderSeed::StopStep { part: PartId::new(run.id, 0), step: *step, grace_seconds }))
    };
    stopping.filter_map(stop).collect()
}

pub(crate) fn stop_grace(state: &State, run: &Run, tasks: &TaskBook) -> u32 {
    // The remaining time is for the tasks that release nodes (HPC-J-12).
    let is_late = tasks.ending.is_some_and(|ending| ending.reason == StopReason::Walltime);
    let most = if is_late { release_seconds(state) / 2 } else { u32::MAX };
    kill_grace(state, run).min(most)
}

/// What the state knows of an instance of a task that is about to start: one process, on the first of the instance's
/// nodes.
#[derive(Clone, Debug)]
pub struct TaskSketch {
    step: StepId,
    instance: TaskInstance,
    /// The nodes of the instance, by name, with its cores there.
    cores: Vec<(String, u32)>,
    cores_here: u32,
    /// Cores of the node that the run will give up.
    given_up: IndexSet,
    release_seconds: u32,
}

impl TaskSketch {
    pub(crate) fn of(state: &State, run: &Run, node: NodeId, step: StepId) -> Option<Self> {
        let running = state.job(run.job)?.tasks.as_ref()?.running.get(&step)?;
        let named = |(node, cores): &(NodeId, u32)| (state.node_name(*node).into_owned(), *cores);
        Some(Self {
            step,
            instance: running.instance,
            cores: running.cores.iter().map(named).collect(),
            cores_here: running.cores.iter().find(|(on, _)| *on == node).map_or(1, |(_, cores)| *cores),
            given_up: given_up(state, run, node),
            release_seconds: release_seconds(state),
        })
    }

    /// Everything that a node needs to start the instance. `list` is that of the record with the job's tasks.
    pub fn order(&self, part: &LaunchSketch, spec: &JobSpec, list: &TaskList) -> Option<LaunchOrder> {
        let task = list.tasks.get(self.instance.task as usize)?;
        let order = part.order(spec, Default::default(), task_launch(task, self.instance))?;
        let nodes = self.cores.iter().zip(0..).map(|((name, _), at)| OrderNode {
            name: name.clone(),
            tasks: u32::from(at == 0),
            component: 0,
            facts: None,
        });
        let walltime_seconds = match task.kind {
            TaskKind::NodeRelease => {
                let most = u64::from(self.release_seconds);
                Some(task.run_time_seconds.map_or(most, |own| own.min(most)))
            }
            _ => task.run_time_seconds,
        };
        Some(LaunchOrder {
            step: self.step,
            environment: self.environment(spec, task),
            working_directory: match &task.working_directory {
                Some(own) => with_value(own, task.kind, self.instance),
                None => spec.working_directory.clone(),
            },
            nodes: Arc::new(nodes.collect()),
            node_index: 0,
            first_rank: 0,
            total_tasks: 1,
            cpus_per_task: self.cores_here,
            cores: order.cores.difference(&self.given_up),
            walltime_seconds,
            ..order
        })
    }

    /// The job's variables, overridden by the task's, overridden by those that identify the instance.
    fn environment(&self, spec: &JobSpec, task: &TaskSpec) -> BTreeMap<String, String> {
        let mut variables = spec.environment.clone();
        variables.extend(task.environment.clone());
        let cores = self.cores.iter().map(|(name, cores)| format!("{name}:{cores}"));
        let own = [
            ("MUSTER_TASK_NUMBER", (u64::from(self.instance.task) + 1).to_string()),
            ("MUSTER_TASK_INSTANCE", instance_number(task.kind, self.instance).to_string()),
            ("MUSTER_TASK_CORES", cores.collect::<Vec<_>>().join(",")),
        ];
        variables.extend(own.map(|(name, value)| (name.to_owned(), value)));
        variables
    }
}

/// Cores of a node that a run will give up.
fn given_up(state: &State, run: &Run, node: NodeId) -> IndexSet {
    let shrinking = state.job(run.job).and_then(|job| job.tasks.as_ref()?.shrinking.as_ref());
    let removed = shrinking.into_iter().flat_map(|(removed, _)| removed.shares()).find(|share| share.node == node);
    removed.map(|share| share.cores.clone()).unwrap_or_default()
}

/// The launch of an instance: each run of `*` in its command and in the names of its files becomes the value of a
/// sweep.
fn task_launch(task: &TaskSpec, instance: TaskInstance) -> Launch {
    let mut launch = task.launch.clone();
    let fill = |text: &mut String| *text = with_value(text, task.kind, instance);
    if let Program::Tasks { argv } = &mut launch.program {
        argv.iter_mut().for_each(fill);
    }
    [&mut launch.stdout, &mut launch.stderr, &mut launch.stdin].into_iter().flatten().for_each(fill);
    launch
}

/// The text with each run of `*` replaced by the value of a sweep, zero-padded to the same length (HPC-J-22).
fn with_value(text: &str, kind: TaskKind, instance: TaskInstance) -> String {
    let TaskKind::Sweep { start, increment, .. } = kind else { return text.to_owned() };
    let value = i64::from(start) + i64::from(increment) * i64::from(instance.instance);
    let mut filled = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(at) = rest.find('*') {
        filled.push_str(&rest[..at]);
        let after = rest[at..].trim_start_matches('*');
        let width = rest.len() - at - after.len();
        filled.push_str(&format!("{value:0width$}"));
        rest = after;
    }
    filled.push_str(rest);
    filled
}

/// The number by which an instance is known to its program: the value of a sweep, else its index, from 0.
fn instance_number(kind: TaskKind, instance: TaskInstance) -> i64 {
    match kind {
        TaskKind::Sweep { start, increment, .. } => {
            i64::from(start) + i64::from(increment) * i64::from(instance.instance)
        }
        _ => i64::from(instance.instance),
    }
}
