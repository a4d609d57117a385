//! What nodes are ordered to do: what follows from a record, and what a node that reports may have missed.
//!
//! Orders can be lost or come twice. An executor obeys each once, by part and step, so repeating them is harmless.

mod steps;
mod tasks;

pub use steps::tasks_order;
pub use tasks::{hold_order, task_order};

use crate::state::{Job, Part, PartState, Phase, Run, State, Suspension};
use muster_schemas::{
    JobId, NodeId, PartId, RunId, Sequence, StepId,
    event::{Event, JobChange, Record, StopReason},
    job::{Component, JobSpec, Launch, Program},
    node::{CLUSTER_NAME_VARIABLE, JOB_NUMBER_VARIABLE, LaunchOrder, NodeOrder, OrderNode, RESTART_COUNT_VARIABLE},
    resources::{NodeShare, Placement},
};
use std::sync::Arc;
use tasks::{grown, shrunk, stop_grace, task_stops};

/// An order, but for what only the log knows of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderSeed {
    /// Launch the node's part of the run: [`launch_order`] with the job as submitted in the record
    /// `submitted_sequence`.
    Launch {
        /// The part of the run.
        part: PartId,
        /// The record of the job's submission.
        submitted_sequence: Sequence,
    },
    /// Launch the node's part of a step: [`step_order`] or [`tasks_order`] with what the record `started_sequence` says.
    LaunchStep {
        /// The part of the run.
        part: PartId,
        /// The step.
        step: StepId,
        /// The record of the job's submission.
        submitted_sequence: Sequence,
        /// The record of the step's start.
        started_sequence: Sequence,
    },
    /// Hold the node's part of a run of tasks: [`hold_order`] with the job as submitted in the record
    /// `submitted_sequence`.
    Hold {
        /// The part of the run.
        part: PartId,
        /// The record of the job's submission.
        submitted_sequence: Sequence,
    },
    /// Launch an instance of a task: [`task_order`] with the job and its tasks as the record `listed_sequence` has them.
    LaunchTask {
        /// The part of the run.
        part: PartId,
        /// The step that the instance is.
        step: StepId,
        /// The record of the job's tasks.
        listed_sequence: Sequence,
    },
    /// See [`NodeOrder::Resize`]: to what the run has of the node at that time.
    Resize {
        /// The part of the run.
        part: PartId,
    },
    /// See [`NodeOrder::StopStep`].
    StopStep {
        /// The part of the run.
        part: PartId,
        /// The step.
        step: StepId,
        /// From SIGTERM to SIGKILL.
        grace_seconds: u32,
    },
    /// See [`NodeOrder::SignalStep`].
    SignalStep {
        /// The part of the run.
        part: PartId,
        /// The step.
        step: StepId,
        /// The signal's number.
        signal: u8,
    },
    /// See [`NodeOrder::Signal`].
    Signal {
        /// The part of the run.
        part: PartId,
        /// The signal's number.
        signal: u8,
    },
    /// See [`NodeOrder::Suspend`].
    Suspend {
        /// The part of the run.
        part: PartId,
    },
    /// See [`NodeOrder::Resume`].
    Resume {
        /// The part of the run.
        part: PartId,
    },
    /// See [`NodeOrder::Stop`].
    Stop {
        /// The part of the run.
        part: PartId,
        /// Why.
        reason: StopReason,
        /// From SIGTERM to SIGKILL.
        grace_seconds: u32,
    },
    /// See [`NodeOrder::SetWalltime`].
    SetWalltime {
        /// The part of the run.
        part: PartId,
        /// From its start, in seconds.
        walltime_seconds: Option<u64>,
    },
    /// See [`NodeOrder::Forget`].
    Forget {
        /// The part of the run.
        part: PartId,
    },
    /// See [`NodeOrder::Tell`]: what the record `told_sequence` says.
    Tell {
        /// The part of the run.
        part: PartId,
        /// The record of what is said.
        told_sequence: Sequence,
    },
}

impl OrderSeed {
    /// The order for a node, unless the log is needed for it.
    pub fn to_order(self, state: &State, node: NodeId) -> Option<NodeOrder> {
        match self {
            Self::Launch { .. }
            | Self::LaunchStep { .. }
            | Self::Hold { .. }
            | Self::LaunchTask { .. }
            | Self::Tell { .. } => None,
            Self::Resize { part } => {
                let (run, known) = state.part_named(node, part)?;
                let share = run.share_of(node, known.component)?;
                Some(NodeOrder::Resize { part, cores: share.cores.clone(), memory_bytes: share.memory_bytes })
            }
            Self::StopStep { part, step, grace_seconds } => Some(NodeOrder::StopStep { part, step, grace_seconds }),
            Self::SignalStep { part, step, signal } => Some(NodeOrder::SignalStep { part, step, signal }),
            Self::Signal { part, signal } => Some(NodeOrder::Signal { part, signal }),
            Self::Suspend { part } => Some(NodeOrder::Suspend { part }),
            Self::Resume { part } => Some(NodeOrder::Resume { part }),
            Self::Stop { part, reason, grace_seconds } => Some(NodeOrder::Stop { part, reason, grace_seconds }),
            Self::SetWalltime { part, walltime_seconds } => Some(NodeOrder::SetWalltime { part, walltime_seconds }),
            Self::Forget { part } => Some(NodeOrder::Forget { part }),
        }
    }
}

/// The orders that follow from a record, by a state that includes it (and may include later ones).
pub fn follow_up(state: &State, record: &Record) -> Vec<(NodeId, OrderSeed)> {
    match &record.event {
        Event::RunAllocated { run, .. } => launching(state, *run),
        Event::RunGrown { run, added, .. } => grown(state, *run, added),
        Event::RunShrunk { run, removed, .. } => shrunk(state, *run, removed),
        Event::RunShrinking { run, .. } | Event::TasksStopping { run, .. } => task_stops(state, *run),
        Event::TaskStarted { run, step, .. } => step_launches(state, *run, *step),
        Event::RunStopping { run, .. } => to_unended(state, *run, |run, part| stop(state, run, part)),
        Event::ComponentStopping { run, component, .. } => component_stops(state, *run, *component),
        Event::JobSignalled { run, signal, .. } => {
            to_unended(state, *run, |run, part| OrderSeed::Signal { part: state.part_id(run, part), signal: *signal })
        }
        Event::JobSuspended { run, .. } => {
            to_unended(state, *run, |run, part| OrderSeed::Suspend { part: state.part_id(run, part) })
        }
        Event::JobResumed { run, .. } => {
            to_unended(state, *run, |run, part| OrderSeed::Resume { part: state.part_id(run, part) })
        }
        Event::JobModified { job, change } => walltime_orders(state, *job, change),
        Event::StepStarted { run, step, .. } | Event::StepLaunched { run, step, .. } => {
            step_launches(state, *run, *step)
        }
        Event::StepStopping { run, step, component, .. } => {
            steps::to_parts(state, *run, *step, *component, |run, launched, part| {
                steps::stop(state, run, *step, launched, part)
            })
        }
        Event::StepSignalled { run, step, component, signal, .. } => {
            let order = |part| OrderSeed::SignalStep { part, step: *step, signal: *signal };
            if *step == StepId(0) {
                return to_lead(state, *run, order);
            }
            steps::to_parts(state, *run, *step, *component, |run, _, part| Some(order(steps::inside(state, run, part))))
        }
        Event::RunEnded { job, run, .. } => forget(state, *job, *run),
        Event::JobTold { run, .. } => {
            to_lead(state, *run, |part| OrderSeed::Tell { part, told_sequence: record.sequence })
        }
        _ => Vec::new(),
    }
}

/// An order to the part that runs a script.
fn to_lead(state: &State, run: RunId, order: impl Fn(PartId) -> OrderSeed) -> Vec<(NodeId, OrderSeed)> {
    let lead = state.run(run).and_then(|run| Some((run, run.lead()?)));
    lead.map(|(run, lead)| (lead.node, order(state.part_id(run, lead)))).into_iter().collect()
}

fn launching(state: &State, run: RunId) -> Vec<(NodeId, OrderSeed)> {
    let Some(run) = state.run(run).filter(|run| run.stopping.is_none()) else { return Vec::new() };
    let parts = run.parts.iter().filter(|part| part.state == PartState::Launching);
    parts.filter_map(|part| Some((part.node, launch(state, run, part)?))).collect()
}

fn launch(state: &State, run: &Run, part: &Part) -> Option<OrderSeed> {
    let job = state.job(run.job)?;
    let (part, submitted_sequence) = (state.part_id(run, part), job.submitted_sequence);
    Some(match job.tasks {
        Some(_) => OrderSeed::Hold { part, submitted_sequence },
        None => OrderSeed::Launch { part, submitted_sequence },
    })
}

fn kill_grace(state: &State, run: &Run) -> u32 {
    let own = state.job(run.job).and_then(|job| job.lead().extras.as_ref()?.kill_grace_seconds);
    own.unwrap_or(state.settings().kill_grace_seconds)
}

fn to_unended(state: &State, run: RunId, order: impl Fn(&Run, &Part) -> OrderSeed) -> Vec<(NodeId, OrderSeed)> {
    let Some(run) = state.run(run) else { return Vec::new() };
    run.parts.iter().filter(|part| !part.has_ended()).map(|part| (part.node, order(run, part))).collect()
}

fn component_stops(state: &State, run: RunId, component: u32) -> Vec<(NodeId, OrderSeed)> {
    let Some(run) = state.run(run) else { return Vec::new() };
    let parts = run.parts.iter().filter(|part| part.component == component && !part.has_ended());
    parts.filter_map(|part| Some((part.node, stop_part(state, run, part)?))).collect()
}

/// The order to end a part, if its run or its component is being ended.
fn stop_part(state: &State, run: &Run, part: &Part) -> Option<OrderSeed> {
    let end = || state.job(run.job)?.single_end(part.component);
    let reason = run.stopping.or_else(|| end().map(|end| end.reason))?;
    Some(stop_for(state, run, part, reason))
}

fn stop(state: &State, run: &Run, part: &Part) -> OrderSeed {
    stop_for(state, run, part, run.stopping.unwrap_or(StopReason::NodeLost))
}

fn stop_for(state: &State, run: &Run, part: &Part, reason: StopReason) -> OrderSeed {
    let grace_seconds = match reason {
        StopReason::CancelledAtOnce | StopReason::FinishedAtOnce => 0,
        _ => kill_grace(state, run),
    };
    OrderSeed::Stop { part: state.part_id(run, part), reason, grace_seconds }
}

fn walltime_orders(state: &State, job: JobId, change: &JobChange) -> Vec<(NodeId, OrderSeed)> {
    let run = state.job(job).and_then(Job::run).and_then(|run| state.run(run));
    let Some(run) = run.filter(|_| change.walltime_seconds.is_some()) else { return Vec::new() };
    let parts = run.parts.iter().filter(|part| !part.has_ended());
    parts.map(|part| (part.node, set_walltime(state, run, part))).collect()
}

fn set_walltime(state: &State, run: &Run, part: &Part) -> OrderSeed {
    let walltime_seconds = state.job(run.job).and_then(|job| walltime_of_part(job, run, part));
    OrderSeed::SetWalltime { part: state.part_id(run, part), walltime_seconds }
}

/// How long a part may run from its own start: one that joined a run later, so much less (HPC-J-11).
fn walltime_of_part(job: &Job, run: &Run, part: &Part) -> Option<u64> {
    let of_run = walltime(job, &run.placement, part.component)?;
    let joined = job.tasks.as_ref().and_then(|tasks| tasks.joined.get(&part.node));
    let late_micros = joined.zip(run.started).map_or(0, |(joined, started)| joined.micros_since(started));
    Some(of_run.saturating_sub(u64::try_from(late_micros).unwrap_or(0) / 1_000_000))
}

/// The walltime of the alternative that was taken.
pub(crate) fn walltime(job: &Job, placement: &Placement, component: u32) -> Option<u64> {
    let placed = placement.components.get(component as usize)?;
    let alternatives = &job.components.get(component as usize)?.shape.alternatives;
    alternatives.get(placed.alternative as usize)?.walltime_seconds
}

fn step_launches(state: &State, run: RunId, step: StepId) -> Vec<(NodeId, OrderSeed)> {
    let Some(run) = state.run(run) else { return Vec::new() };
    let parts = run.steps.get(&step).map_or(0, |step| step.parts.len());
    (0..parts).filter_map(|at| step_launch(state, run, step, at)).collect()
}

/// The order about a part of a step that has not ended, and for whom it is.
fn step_launch(state: &State, run: &Run, step: StepId, at: usize) -> Option<(NodeId, OrderSeed)> {
    let node = run.steps.get(&step)?.parts.get(at).filter(|part| part.exit.is_none())?.node;
    if let Some((launched, part)) = state.launched_step(run.id, step).and_then(|step| Some((step, step.parts.get(at)?)))
    {
        let stopping = steps::stop(state, run, step, launched, part);
        let order = stopping.or_else(|| launch_step(state, run, steps::inside(state, run, part), step));
        return Some((node, order?));
    }
    Some((node, launch_step(state, run, state.part_id(run, run.part(node)?), step)?))
}

fn launch_step(state: &State, run: &Run, part: PartId, step: StepId) -> Option<OrderSeed> {
    let job = state.job(run.job)?;
    let submitted_sequence = job.submitted_sequence;
    let started_sequence = run.steps.get(&step)?.started_sequence;
    if let Some(tasks) = &job.tasks
        && let Some(task) = tasks.running.get(&step)
    {
        return Some(if task.is_stopping {
            OrderSeed::StopStep { part, step, grace_seconds: stop_grace(state, run, tasks) }
        } else {
            OrderSeed::LaunchTask { part, step, listed_sequence: tasks.listed }
        });
    }
    Some(OrderSeed::LaunchStep { part, step, submitted_sequence, started_sequence })
}

fn forget(state: &State, job: JobId, run: RunId) -> Vec<(NodeId, OrderSeed)> {
    let last = state.job(job).and_then(|job| job.last_run.as_ref()).filter(|last| last.run == run);
    let shares = last.into_iter().flat_map(|last| last.placement.shares_by_component());
    let forget = |(component, share): (u32, &NodeShare)| {
        Some((share.node, OrderSeed::Forget { part: state.last_part_id(job, share.node, component)? }))
    };
    shares.filter_map(forget).collect()
}

/// Whether a node had started a part and knows it no more, by a list of the parts that it knows which is true for the record `as_of`
/// (see [`muster_schemas::node::Mark`]). What started later can be missing from the list and run.
pub(crate) fn is_forgotten(state: &State, run: &Run, part: &Part, known: &[PartId], as_of: Sequence) -> bool {
    part.is_up() && part.since <= as_of && !known.contains(&state.part_id(run, part))
}

/// Whether a node that is up has forgotten something by such a list, so that its report is news.
pub fn has_forgotten(state: &State, node: NodeId, known: &[PartId], as_of: Sequence) -> bool {
    let runs = state.node(node).into_iter().flat_map(|node| &node.runs).filter_map(|run| state.run(*run));
    runs.flat_map(|run| run.parts_on(node).map(move |part| (run, part)))
        .any(|(run, part)| is_forgotten(state, run, part, known, as_of))
}

/// The orders that a node may have missed, given the parts of runs that it says it knows. Launches come before anything else.
pub fn reconcile(state: &State, node: NodeId, reported: &[PartId]) -> Vec<OrderSeed> {
    let mut orders = Vec::new();
    for run in state.node(node).into_iter().flat_map(|node| &node.runs).filter_map(|run| state.run(*run)) {
        for part in run.parts_on(node).filter(|part| !part.has_ended()) {
            orders.extend(missed(state, run, part, reported.contains(&state.part_id(run, part))));
        }
    }
    let over = reported.iter().filter(|part| state.part_named(node, **part).is_none());
    // Its node was thought lost, or the report crossed the end of the run: whatever is left of it goes.
    orders.extend(over.map(|part| OrderSeed::Stop {
        part: *part,
        reason: StopReason::NodeLost,
        grace_seconds: state.settings().kill_grace_seconds,
    }));
    orders
}

fn missed(state: &State, run: &Run, part: &Part, is_known: bool) -> Vec<OrderSeed> {
    if let Some(stop) = stop_part(state, run, part) {
        return vec![stop];
    }
    let mut orders = Vec::new();
    if !is_known && part.state == PartState::Launching {
        orders.extend(launch(state, run, part));
    }
    let tasks = state.job(run.job).and_then(|job| job.tasks.as_ref());
    if is_known && tasks.is_some_and(|tasks| tasks.resized.contains(&part.node)) {
        orders.push(OrderSeed::Resize { part: state.part_id(run, part) });
    }
    if run.walltime_changed {
        orders.push(set_walltime(state, run, part));
    }
    match run.suspension {
        Suspension::Never => {}
        Suspension::Suspended | Suspension::Lent | Suspension::Resuming(_) => {
            orders.push(OrderSeed::Suspend { part: state.part_id(run, part) })
        }
        Suspension::Resumed => orders.push(OrderSeed::Resume { part: state.part_id(run, part) }),
    }
    for step in run.steps.keys() {
        let at = state.step_position(run, *step, part);
        orders.extend(at.and_then(|at| step_launch(state, run, *step, at)).map(|(_, order)| order));
    }
    orders
}

/// The nodes of a run as its launch orders name them. They are the same for all of its parts: who makes orders for many parts, of one
/// and the same state, makes them once.
#[derive(Debug, Default)]
pub struct RunNodes {
    of: Option<(RunId, RunShape)>,
}

/// The nodes, and how many tasks each part has.
type RunShape = (Arc<Vec<OrderNode>>, Arc<[u32]>);

impl RunNodes {
    fn of(&mut self, state: &State, run: &Run) -> RunShape {
        match &self.of {
            Some((known, shape)) if *known == run.id => shape.clone(),
            _ => {
                let tasks: Arc<[u32]> = run.placement.shares().map(|share| share.tasks).collect();
                let shape = (order_nodes(state, run, &tasks), tasks);
                self.of = Some((run.id, shape.clone()));
                shape
            }
        }
    }
}

fn order_nodes(state: &State, run: &Run, tasks: &[u32]) -> Arc<Vec<OrderNode>> {
    let nodes = run.parts.iter().zip(tasks).map(|(part, tasks)| OrderNode {
        name: state.node_name(part.node).into_owned(),
        tasks: *tasks,
        component: part.component,
    });
    Arc::new(nodes.collect())
}

/// Everything that a node needs to start its part of a run. `None` if the run has no such part there, or is not of this job.
pub fn launch_order(state: &State, part: PartId, node: NodeId, spec: &JobSpec) -> Option<LaunchOrder> {
    launch_order_among(state, part, node, spec, &mut RunNodes::default())
}

/// The same for one of many parts.
pub fn launch_order_among(
    state: &State,
    part: PartId,
    node: NodeId,
    spec: &JobSpec,
    nodes: &mut RunNodes,
) -> Option<LaunchOrder> {
    let (run, part) = state.part_named(node, part)?;
    let component = spec.components.get(part.component as usize)?;
    let mut launch = component.launch.clone();
    let first = run.parts.iter().find(|first| first.component == part.component);
    if matches!(launch.program, Program::Script { .. }) && !first.is_some_and(|first| first.is(part)) {
        // The script runs once; here only the containment is made.
        launch.program = Program::None;
    }
    let (nodes, tasks) = nodes.of(state, run);
    order(state, run, part, spec, component, launch, (nodes, &tasks))
}

/// Everything that a node needs to start its part of a step; `launch` is what the record of its start says.
pub fn step_order(
    state: &State,
    part: PartId,
    node: NodeId,
    step: StepId,
    spec: &JobSpec,
    launch: &Launch,
) -> Option<LaunchOrder> {
    let (run, part) = state.part_named(node, part)?;
    let component = spec.components.get(part.component as usize)?;
    let parts = &run.steps.get(&step)?.parts;
    let at = |part: &Part| state.step_position(run, step, part);
    let tasks = run.parts.iter().map(|part| at(part).and_then(|at| parts.get(at)).map_or(0, |part| part.tasks));
    let tasks: Vec<u32> = tasks.collect();
    let order = order(state, run, part, spec, component, launch.clone(), (order_nodes(state, run, &tasks), &tasks))?;
    Some(LaunchOrder { step, ..order })
}

/// An order for one part of a run, with the number of tasks of each of its parts.
fn order(
    state: &State,
    run: &Run,
    part: &Part,
    spec: &JobSpec,
    component: &Component,
    launch: Launch,
    (nodes, tasks): (Arc<Vec<OrderNode>>, &[u32]),
) -> Option<LaunchOrder> {
    let job = state.job(run.job).filter(|job| !matches!(job.phase, Phase::Finished(_)))?;
    let at = run.parts.iter().position(|other| other.is(part))?;
    let share = run.share_of(part.node, part.component)?;
    let kept = job.components.get(part.component as usize)?;
    let sum = |tasks: &[u32]| tasks.iter().fold(0, |sum: u32, tasks| sum.saturating_add(*tasks));
    let placed = run.placement.components.get(part.component as usize)?;
    let alternative = component.alternatives.get(placed.alternative as usize);
    let cpus_per_task =
        alternative.and_then(|alternative| alternative.requests.first()).map_or(1, |request| request.cpus_per_task);
    let mut environment = spec.environment.clone();
    environment.insert(CLUSTER_NAME_VARIABLE.to_owned(), state.settings().name.clone());
    let grace = launch.kill_grace_seconds.unwrap_or(state.settings().kill_grace_seconds);
    // Those that are launched for the first time are most, and have nothing more to carry.
    if let Some(restarts) = job.attempts.checked_sub(1).filter(|restarts| *restarts > 0) {
        environment.insert(RESTART_COUNT_VARIABLE.to_owned(), restarts.to_string());
    }
    if let (Some(_), number) = (job.id.index, state.number_of(job.id)) {
        environment.insert(JOB_NUMBER_VARIABLE.to_owned(), number.to_string());
    }
    Some(LaunchOrder {
        job: job.id,
        part: state.part_id(run, part),
        step: StepId(0),
        name: job.name.to_string(),
        owner: (*job.owner).clone(),
        account: kept.account.as_deref().map(str::to_owned),
        queue: kept.queue.to_string(),
        launch,
        environment,
        working_directory: spec.working_directory.clone(),
        umask: spec.umask,
        nodes,
        node_index: u32::try_from(at).ok()?,
        first_rank: sum(&tasks[..at]),
        total_tasks: sum(tasks),
        cpus_per_task,
        cores: share.cores.clone(),
        gpus: share.gpus.clone(),
        memory_bytes: share.memory_bytes,
        walltime_seconds: walltime_of_part(job, run, part),
        checkpoint: spec.checkpoint,
        kill_grace_seconds: grace,
        trace: job.trace,
        access: None,
    })
}
