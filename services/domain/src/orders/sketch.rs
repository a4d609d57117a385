//! The part of an order that the state knows. A sketch needs neither the state nor the log: it is made in passing
//! where the state is at hand, and made into an order elsewhere. Facts that all parts of a run share are found once.

use super::{OrderSeed, tasks::TaskSketch, walltime_of_part};
use crate::state::{Component, Job, Part, Phase, Run, State};
use muster_schemas::{
    JobId, NodeId, PartId, RunId, Sequence, StepId,
    cluster::ClusterSettings,
    event::{Owner, TraceContext},
    job::{JobSpec, Launch, Program},
    node::{
        CLUSTER_NAME_VARIABLE, JOB_NUMBER_VARIABLE, LaunchOrder, NODE_CORES_VARIABLE, NodeOrder, OrderNode,
        RESTART_COUNT_VARIABLE, node_cores_text,
    },
    resources::{ComponentPlacement, IndexSet, Placement},
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// An order as far as the state knows it.
#[derive(Clone, Debug)]
pub enum Sketch {
    /// All of it is known.
    Ready(NodeOrder),
    /// See [`NodeOrder::Launch`]: [`LaunchSketch::launch_order`] with the job as the record `submitted` has it.
    Launch {
        /// The part.
        part: LaunchSketch,
        /// All nodes of the run.
        nodes: Arc<RunNodes>,
        /// The record of the job's submission.
        submitted: Sequence,
    },
    /// See [`NodeOrder::Hold`]: [`LaunchSketch::hold_order`] with the job as the record `submitted` has it.
    Hold {
        /// The part.
        part: LaunchSketch,
        /// All nodes of the run.
        nodes: Arc<RunNodes>,
        /// The record of the job's submission.
        submitted: Sequence,
    },
    /// The node's part of a step, by the job as the record `submitted` has it and the step as the record `started` has it.
    Step {
        /// The part of the run.
        part: LaunchSketch,
        /// The part of the step inside.
        step: StepSketch,
        /// The record of the job's submission.
        submitted: Sequence,
        /// The record of the step's start.
        started: Sequence,
    },
    /// An instance of a task: [`TaskSketch::order`] with the job and its tasks as the record `listed` has them.
    Task {
        /// The part of the run.
        part: LaunchSketch,
        /// The instance.
        task: TaskSketch,
        /// The record of the job's tasks.
        listed: Sequence,
    },
    /// See [`NodeOrder::Tell`]: what the record `told` says.
    Tell {
        /// The part of the run.
        part: PartId,
        /// The record of the message.
        told: Sequence,
    },
}

/// Facts that launches of all parts of a run share.
#[derive(Debug)]
pub struct RunSketch {
    job: JobId,
    name: Arc<str>,
    owner: Arc<Owner>,
    trace: TraceContext,
    restarts: u32,
    /// The number of a task of an array.
    number: Option<u64>,
    settings: Arc<ClusterSettings>,
    placement: Arc<Placement>,
    components: Vec<ComponentSketch>,
}

#[derive(Debug)]
struct ComponentSketch {
    account: Option<Arc<str>>,
    queue: Arc<str>,
    /// Where among the parts of the run its own begin.
    first: usize,
}

impl RunSketch {
    /// `None` if there is nothing to launch any more.
    fn of(state: &State, run: &Run) -> Option<Self> {
        let job = state.job(run.job).filter(|job| !matches!(job.phase, Phase::Finished(_)))?;
        let mut first = 0;
        let component = |(kept, placed): (&Component, &ComponentPlacement)| {
            let sketch = ComponentSketch { account: kept.account.clone(), queue: kept.queue.clone(), first };
            first += placed.shares.len();
            sketch
        };
        Some(Self {
            job: job.id,
            name: job.name.clone(),
            owner: job.owner.clone(),
            trace: job.trace,
            restarts: job.attempts.saturating_sub(1),
            number: job.id.index.map(|_| state.number_of(job.id)),
            settings: state.settings.clone(),
            placement: run.placement.clone(),
            components: job.components.iter().zip(&run.placement.components).map(component).collect(),
        })
    }
}

/// The nodes of a run as its orders name them, with the tasks that the run or a step has there.
#[derive(Debug)]
pub struct RunNodes {
    nodes: Arc<Vec<OrderNode>>,
    /// For each of them the rank of its first task.
    first_ranks: Vec<u32>,
    total_tasks: u32,
}

impl RunNodes {
    fn of(state: &State, run: &Run, tasks: impl Iterator<Item = u32>) -> Self {
        let (mut first_ranks, mut total_tasks) = (Vec::with_capacity(run.parts.len()), 0_u32);
        let node = |(part, tasks): (&Part, u32)| {
            first_ranks.push(total_tasks);
            total_tasks = total_tasks.saturating_add(tasks);
            OrderNode { name: state.node_name(part.node).into_owned(), tasks, component: part.component }
        };
        let nodes = Arc::new(run.parts.iter().zip(tasks).map(node).collect());
        Self { nodes, first_ranks, total_tasks }
    }

    fn of_run(state: &State, run: &Run) -> Self {
        Self::of(state, run, run.placement.shares().map(|share| share.tasks))
    }

    fn of_step(state: &State, run: &Run, step: StepId) -> Self {
        let parts = run.steps.get(&step).map(|step| &step.parts);
        let tasks = |part: &Part| Some(parts?.get(state.step_position(run, step, part)?)?.tasks);
        Self::of(state, run, run.parts.iter().map(|part| tasks(part).unwrap_or(0)))
    }
}

/// A launch on one node, but for what only the log knows.
#[derive(Clone, Debug)]
pub struct LaunchSketch {
    pub(super) run: Arc<RunSketch>,
    pub(super) part: PartId,
    /// Where it is among the parts of the run.
    at: usize,
    component: u32,
    walltime_seconds: Option<u64>,
}

/// The state's knowledge of the part of a step on one node.
#[derive(Clone, Debug)]
pub enum StepSketch {
    /// A step that runs the same everywhere: [`LaunchSketch::step_order`].
    Plain(StepId, Arc<RunNodes>),
    /// A step with places of its own: [`LaunchSketch::tasks_order`].
    Placed {
        /// Its number.
        step: StepId,
        /// Which of its places.
        at: usize,
        /// Its cores there.
        cores: IndexSet,
    },
}

impl StepSketch {
    /// The number of the step.
    pub fn number(&self) -> StepId {
        match self {
            Self::Plain(step, _) | Self::Placed { step, .. } => *step,
        }
    }
}

impl LaunchSketch {
    /// Everything that a node needs to start its part of a run; `spec` is the job as submitted. `None` if the run is not of this job.
    pub fn launch_order(&self, nodes: &RunNodes, spec: &JobSpec) -> Option<LaunchOrder> {
        let mut launch = spec.components.get(self.component as usize)?.launch.clone();
        let is_script = matches!(launch.program, Program::Script { .. });
        let is_first = self.run.components.get(self.component as usize)?.first == self.at;
        if is_script && !is_first {
            // The script runs once; here only the containment is made.
            launch.program = Program::None;
        }
        let mut order = self.order_among(nodes, spec, launch)?;
        if is_script && is_first && order.nodes.len() > 1 {
            // A script is told what the job has on its other nodes; nothing else asks for it (SL-E-03).
            let cores = node_cores_text(self.run.placement.shares().map(|share| share.cores.len()));
            order.environment.insert(NODE_CORES_VARIABLE.to_owned(), cores);
        }
        Some(order)
    }

    /// Everything that a node needs to hold its part of a run of tasks: nothing is started by it.
    pub fn hold_order(&self, nodes: &RunNodes, spec: &JobSpec) -> Option<LaunchOrder> {
        let launch = spec.components.get(self.component as usize)?.launch.clone();
        self.order_among(nodes, spec, Launch { program: Program::None, ..launch })
    }

    /// Everything that a node needs to start its part of a step that runs the same everywhere; `launch` is what the record of its start
    /// says.
    pub fn step_order(&self, step: StepId, nodes: &RunNodes, spec: &JobSpec, launch: &Launch) -> Option<LaunchOrder> {
        Some(LaunchOrder { step, ..self.order_among(nodes, spec, launch.clone())? })
    }

    fn order_among(&self, nodes: &RunNodes, spec: &JobSpec, launch: Launch) -> Option<LaunchOrder> {
        Some(LaunchOrder {
            nodes: nodes.nodes.clone(),
            node_index: u32::try_from(self.at).ok()?,
            first_rank: *nodes.first_ranks.get(self.at)?,
            total_tasks: nodes.total_tasks,
            ..self.order(spec, spec.environment.clone(), launch)?
        })
    }

    /// An order about this part, which names no nodes.
    pub(super) fn order(
        &self,
        spec: &JobSpec,
        mut environment: BTreeMap<String, String>,
        launch: Launch,
    ) -> Option<LaunchOrder> {
        let run = &*self.run;
        let at = self.component as usize;
        let (component, kept) = (spec.components.get(at)?, run.components.get(at)?);
        let alternative = component.alternatives.get(run.placement.components.get(at)?.alternative as usize);
        let request = alternative.and_then(|alternative| alternative.requests.first());
        let share = run.placement.share_at(self.at)?;
        environment.insert(CLUSTER_NAME_VARIABLE.to_owned(), run.settings.name.clone());
        // Those that are launched for the first time are most, and have nothing more to carry.
        if run.restarts > 0 {
            environment.insert(RESTART_COUNT_VARIABLE.to_owned(), run.restarts.to_string());
        }
        if let Some(number) = run.number {
            environment.insert(JOB_NUMBER_VARIABLE.to_owned(), number.to_string());
        }
        Some(LaunchOrder {
            job: run.job,
            part: self.part,
            step: StepId(0),
            name: run.name.to_string(),
            owner: (*run.owner).clone(),
            account: kept.account.as_deref().map(str::to_owned),
            queue: kept.queue.to_string(),
            kill_grace_seconds: launch.kill_grace_seconds.unwrap_or(run.settings.kill_grace_seconds),
            launch,
            environment,
            working_directory: spec.working_directory.clone(),
            umask: spec.umask,
            nodes: Arc::default(),
            node_index: 0,
            first_rank: 0,
            total_tasks: 0,
            cpus_per_task: request.map_or(1, |request| request.cpus_per_task),
            cores: share.cores.clone(),
            gpus: share.gpus.clone(),
            memory_bytes: share.memory_bytes,
            walltime_seconds: self.walltime_seconds,
            checkpoint: spec.checkpoint,
            trace: run.trace,
            access: None,
            dialect: spec.dialect.clone(),
        })
    }
}

/// Makes sketches from one state: what several orders have in common is found once.
pub struct Sketches<'a> {
    state: &'a State,
    runs: HashMap<RunId, Option<Arc<RunSketch>>>,
    /// By step; 0 is the run itself.
    nodes: HashMap<(RunId, StepId), Arc<RunNodes>>,
}

impl<'a> Sketches<'a> {
    /// The sketches of a state.
    pub fn new(state: &'a State) -> Self {
        Self { state, runs: HashMap::new(), nodes: HashMap::new() }
    }

    /// The order to a node that a seed stands for. `None` if there is no longer anything to do.
    pub fn sketch(&mut self, node: NodeId, seed: OrderSeed) -> Option<Sketch> {
        Some(match seed {
            OrderSeed::Launch { part, submitted_sequence: submitted } => {
                let (run, part) = self.part(node, part)?;
                Sketch::Launch { part, nodes: self.nodes_of(run, StepId(0)), submitted }
            }
            OrderSeed::Hold { part, submitted_sequence: submitted } => {
                let (run, part) = self.part(node, part)?;
                Sketch::Hold { part, nodes: self.nodes_of(run, StepId(0)), submitted }
            }
            OrderSeed::LaunchStep { part, step, submitted_sequence: submitted, started_sequence: started } => {
                let (run, part) = self.part(node, part)?;
                let step = self.step(run, &part, node, step)?;
                Sketch::Step { part, step, submitted, started }
            }
            OrderSeed::LaunchTask { part, step, listed_sequence: listed } => {
                let (run, part) = self.part(node, part)?;
                let task = TaskSketch::of(self.state, run, node, step)?;
                Sketch::Task { part, task, listed }
            }
            OrderSeed::Tell { part, told_sequence: told } => Sketch::Tell { part, told },
            seed => Sketch::Ready(ready(self.state, node, seed)?),
        })
    }

    fn part(&mut self, node: NodeId, id: PartId) -> Option<(&'a Run, LaunchSketch)> {
        let state = self.state;
        let (run, part) = state.part_named(node, id)?;
        let of_run = self.runs.entry(run.id).or_insert_with(|| RunSketch::of(state, run).map(Arc::new)).clone()?;
        let job: &Job = state.job(run.job)?;
        let sketch = LaunchSketch {
            run: of_run,
            part: id,
            at: run.position_of(node, part.component)?,
            component: part.component,
            walltime_seconds: walltime_of_part(job, run, part),
        };
        Some((run, sketch))
    }

    fn nodes_of(&mut self, run: &Run, step: StepId) -> Arc<RunNodes> {
        let state = self.state;
        let make = || match step {
            StepId(0) => RunNodes::of_run(state, run),
            step => RunNodes::of_step(state, run, step),
        };
        self.nodes.entry((run.id, step)).or_insert_with(|| Arc::new(make())).clone()
    }

    fn step(&mut self, run: &Run, part: &LaunchSketch, node: NodeId, step: StepId) -> Option<StepSketch> {
        let Some(placed) = self.state.launched_step(run.id, step) else {
            run.steps.get(&step)?;
            return Some(StepSketch::Plain(step, self.nodes_of(run, step)));
        };
        let at = placed.position(node, part.component)?;
        Some(StepSketch::Placed { step, at, cores: placed.parts.get(at)?.share.cores.clone() })
    }
}

/// The order of a seed for which the state has all.
fn ready(state: &State, node: NodeId, seed: OrderSeed) -> Option<NodeOrder> {
    Some(match seed {
        OrderSeed::Launch { .. }
        | OrderSeed::LaunchStep { .. }
        | OrderSeed::Hold { .. }
        | OrderSeed::LaunchTask { .. }
        | OrderSeed::Tell { .. } => return None,
        OrderSeed::Resize { part } => {
            let (run, known) = state.part_named(node, part)?;
            let share = run.share_of(node, known.component)?;
            NodeOrder::Resize { part, cores: share.cores.clone(), memory_bytes: share.memory_bytes }
        }
        OrderSeed::StopStep { part, step, grace_seconds } => NodeOrder::StopStep { part, step, grace_seconds },
        OrderSeed::SignalStep { part, step, signal } => NodeOrder::SignalStep { part, step, signal },
        OrderSeed::Signal { part, signal } => NodeOrder::Signal { part, signal },
        OrderSeed::Suspend { part } => NodeOrder::Suspend { part },
        OrderSeed::Resume { part } => NodeOrder::Resume { part },
        OrderSeed::Stop { part, reason, grace_seconds } => NodeOrder::Stop { part, reason, grace_seconds },
        OrderSeed::SetWalltime { part, walltime_seconds } => NodeOrder::SetWalltime { part, walltime_seconds },
        OrderSeed::Forget { part } => NodeOrder::Forget { part },
    })
}
