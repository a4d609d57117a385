//! The part of a launch that the state knows.

use crate::{
    jobs::{Component, Phase},
    runs::{Part, Run},
    state::State,
};
use muster_schemas::{
    JobId, NodeId, PartId, StepId,
    cluster::ClusterSettings,
    event::{OutputFiles, Owner, TraceContext},
    job::{JobSpec, JobType, Launch, Program},
    node::{
        CLUSTER_NAME_VARIABLE, JOB_NUMBER_VARIABLE, LaunchOrder, NODE_CORES_VARIABLE, NodeFacts, OrderNode,
        RESTART_COUNT_VARIABLE, node_cores_text,
    },
    resources::{ComponentPlacement, NodeShare, Placement},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Facts shared by the launches of all parts of a run.
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
    /// The files for its output, if they differ from the submission.
    output: Option<OutputFiles>,
}

#[derive(Debug)]
struct ComponentSketch {
    account: Option<Arc<str>>,
    queue: Arc<str>,
    /// The index of this component's first part among the parts of the run.
    first: usize,
}

impl RunSketch {
    /// `None` if there is nothing left to launch.
    pub(crate) fn of(state: &State, run: &Run) -> Option<Self> {
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
            output: state.altered_output(job.id).cloned(),
        })
    }
}

/// The nodes of a run as its orders name them, with the run's tasks there.
#[derive(Debug)]
pub struct RunNodes {
    nodes: Arc<Vec<OrderNode>>,
    /// The rank of the first task on each of them.
    first_ranks: Vec<u32>,
    total_tasks: u32,
}

impl RunNodes {
    pub(crate) fn of(state: &State, run: &Run) -> Self {
        let (mut first_ranks, mut total_tasks) = (Vec::with_capacity(run.parts.len()), 0_u32);
        let describes = state.job(run.job).is_some_and(|job| job.types().contains(&JobType::DescribesNodes));
        let mut facts = if describes { facts(state, run) } else { BTreeMap::new() };
        let node = |(part, share): (&Part, &NodeShare)| {
            first_ranks.push(total_tasks);
            total_tasks = total_tasks.saturating_add(share.tasks);
            OrderNode {
                name: state.node_name(part.node).into_owned(),
                tasks: share.tasks,
                component: part.component,
                facts: facts.remove(&(part.node, part.component)),
            }
        };
        let nodes = Arc::new(run.parts.iter().zip(run.placement.shares()).map(node).collect());
        Self { nodes, first_ranks, total_tasks }
    }
}

/// What the nodes of a run are, for files about them (OAR-J-15).
fn facts(state: &State, run: &Run) -> BTreeMap<(NodeId, u32), Box<NodeFacts>> {
    let of_run: BTreeSet<NodeId> = run.nodes().collect();
    let mut before: BTreeMap<NodeId, (u64, u64)> = BTreeMap::new();
    let (mut cores, mut sockets) = (0_u64, 0_u64);
    for node in state.nodes() {
        if of_run.contains(&node.id) {
            before.insert(node.id, (cores, sockets));
        }
        cores += u64::from(node.spec.cores);
        sockets += u64::from(node.spec.sockets.max(1).min(node.spec.cores));
    }
    let of_part = |(part, share): (&Part, &NodeShare)| {
        let spec = &state.node(part.node)?.spec;
        let (cores_before, sockets_before) = *before.get(&part.node)?;
        let facts = NodeFacts {
            properties: spec.properties.clone(),
            cores: share.cores.clone(),
            all_cores: spec.cores,
            sockets: spec.sockets.max(1),
            cores_before,
            sockets_before,
        };
        Some(((part.node, part.component), Box::new(facts)))
    };
    run.parts.iter().zip(run.placement.shares()).filter_map(of_part).collect()
}

/// A launch on one node, except what only the log knows.
#[derive(Clone, Debug)]
pub struct LaunchSketch {
    pub(crate) run: Arc<RunSketch>,
    pub(crate) part: PartId,
    /// Its index among the parts of the run.
    at: usize,
    component: u32,
    walltime_seconds: Option<u64>,
}

impl LaunchSketch {
    /// The sketch for the part at an index of the run, for a component.
    pub(crate) fn new(
        run: Arc<RunSketch>,
        part: PartId,
        (at, component): (usize, u32),
        walltime_seconds: Option<u64>,
    ) -> Self {
        Self { run, part, at, component, walltime_seconds }
    }

    /// The component of the part, from 0.
    pub(crate) fn component(&self) -> u32 {
        self.component
    }

    /// Everything that a node needs to start its part of a run; `spec` is the job as submitted. `None` if the run does
    /// not belong to this job.
    pub fn launch_order(&self, nodes: &RunNodes, spec: &JobSpec) -> Option<LaunchOrder> {
        let mut launch = self.launch_of(spec)?;
        let is_script = matches!(launch.program, Program::Script { .. });
        let is_first = self.run.components.get(self.component as usize)?.first == self.at;
        if is_script && !is_first {
            // The script runs once, on another node; here only the containment is created.
            launch.program = Program::None;
        }
        let mut order = self.order_among(nodes, spec, launch)?;
        if is_script && is_first && order.nodes.len() > 1 {
            // A script gets the job's cores on all nodes; nothing else needs them (SL-E-03).
            let cores = node_cores_text(self.run.placement.shares().map(|share| share.cores.len()));
            order.environment.insert(NODE_CORES_VARIABLE.to_owned(), cores);
        }
        Some(order)
    }

    /// Everything that a node needs to hold its part of a run of tasks, without starting anything.
    pub fn hold_order(&self, nodes: &RunNodes, spec: &JobSpec) -> Option<LaunchOrder> {
        let launch = self.launch_of(spec)?;
        self.order_among(nodes, spec, Launch { program: Program::None, ..launch })
    }

    fn launch_of(&self, spec: &JobSpec) -> Option<Launch> {
        let mut launch = spec.components.get(self.component as usize)?.launch.clone();
        if let Some(output) = &self.run.output {
            output.replace(&mut launch);
        }
        Some(launch)
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

    /// An order about this part that names no nodes.
    pub(crate) fn order(
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
        // Most launches are first ones and carry nothing more.
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
            group: spec.group.clone(),
        })
    }
}
