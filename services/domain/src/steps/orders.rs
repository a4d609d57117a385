//! Orders about steps.

use crate::{
    orders::{LaunchSketch, OrderSeed},
    runs::{Run, orders::kill_grace},
    state::State,
    steps::{AtOnce, Step, StepPart},
};
use muster_schemas::{
    NodeId, PartId, RunId, StepId,
    job::{JobSpec, Launch, Program},
    node::{LaunchOrder, NodeOrder, OrderNode},
    resources::IndexSet,
    steps::{ProcessGroup, StepShare, StepSpec, StepStreams, StepTasks},
};
use std::sync::Arc;

/// An order to the nodes where a step, or its part for one component, has not ended; it is about the part of the step
/// within a part of the run.
pub(crate) fn to_parts(
    state: &State,
    run: RunId,
    step: StepId,
    component: Option<u32>,
    order: impl Fn(&Run, &Step, &StepPart, PartId) -> Option<OrderSeed>,
) -> Vec<(NodeId, OrderSeed)> {
    let Some((run, launched)) = state.run(run).and_then(|run| Some((run, state.step(run.id, step)?))) else {
        return Vec::new();
    };
    let names = state.part_names(run);
    let ends = run.steps.get(&step).map(|step| &*step.parts).unwrap_or_default();
    let live = launched.parts.iter().zip(ends).filter(|(_, end)| end.exit.is_none()).map(|(part, _)| part);
    let parts = live.filter(|part| component.is_none_or(|one| one == part.share.component));
    let order = |part: &StepPart| {
        let inside = names.of_part(part.share.node, part.share.component);
        Some((part.share.node, order(run, launched, part, inside)?))
    };
    parts.filter_map(order).collect()
}

/// The order to stop a part that is being ended, within this part of the run.
pub(crate) fn stop(
    state: &State,
    run: &Run,
    step: StepId,
    launched: &Step,
    (part, inside): (&StepPart, PartId),
) -> Option<OrderSeed> {
    let grace_seconds = match part.stopping? {
        AtOnce::Yes => 0,
        AtOnce::No => launched.kill_grace_seconds.unwrap_or_else(|| kill_grace(state, run)),
    };
    Some(OrderSeed::StopStep { part: inside, step, grace_seconds })
}

/// The order to let a part of a step run as long as the step may now.
pub(crate) fn set_walltime(step: StepId, launched: &Step, part: PartId) -> OrderSeed {
    OrderSeed::SetStepWalltime { part, step, walltime_seconds: launched.walltime_seconds }
}

/// The record of a step's launch, in the form needed for the orders to its nodes.
#[derive(Debug)]
pub struct StepRecord {
    step: StepSpec,
    /// For each place of the step, the group and the index within the group.
    places: Vec<(usize, usize)>,
    nodes: Arc<Vec<OrderNode>>,
    total_tasks: u32,
    process_group: Option<ProcessGroup>,
}

impl StepRecord {
    /// Takes the step of the launch record.
    pub fn new(step: StepSpec) -> Self {
        let nodes = step.places().map(|(group, place)| OrderNode {
            name: place.node.clone(),
            tasks: u32::try_from(place.ranks.len()).unwrap_or(u32::MAX),
            component: group.component,
            facts: None,
        });
        let nodes = Arc::new(nodes.collect());
        let places =
            step.groups.iter().enumerate().flat_map(|(at, group)| (0..group.places.len()).map(move |of| (at, of)));
        let process_group = step.process_management.map(|management| ProcessGroup {
            management,
            ranks: Arc::new(step.places().map(|(_, place)| place.ranks.clone()).collect()),
        });
        Self { places: places.collect(), nodes, total_tasks: step.total_tasks(), process_group, step }
    }
}

impl StepRecord {
    /// Whether the step has its own environment instead of its job's.
    pub fn has_environment(&self) -> bool {
        self.step.environment.is_some()
    }
}

impl LaunchSketch {
    /// Everything that a node needs to start its tasks of a step: those at place `at`, with this share of it.
    pub fn tasks_order(
        &self,
        (step, at): (StepId, usize),
        share: &StepShare,
        spec: &JobSpec,
        record: &StepRecord,
    ) -> Option<NodeOrder> {
        let launched = &record.step;
        let (group_index, of_group) = *record.places.get(at)?;
        let group = launched.groups.get(group_index)?;
        let place = group.places.get(of_group)?;
        let working_directory = launched.working_directory_of(group).unwrap_or(&spec.working_directory);
        let meets = |ranks: &IndexSet| !ranks.intersection(&place.ranks).is_empty();
        let programs: Vec<_> = group.programs.iter().filter(|program| meets(&program.ranks)).cloned().collect();
        let argv = programs.first()?.argv.clone();
        let launch = Launch {
            program: Program::Tasks { argv },
            kill_grace_seconds: launched.kill_grace_seconds,
            warning: launched.warning,
            container: group.container.clone(),
            ..Launch::default()
        };
        let order = self.order(spec, Default::default(), launch)?;
        let gpus_of_job = order.gpus.clone();
        let mut environment = launched.environment.clone().unwrap_or_else(|| spec.environment.clone());
        environment.extend(group.environment.clone());
        let launch = LaunchOrder {
            step,
            environment,
            working_directory: working_directory.clone(),
            umask: launched.umask.or(spec.umask),
            nodes: record.nodes.clone(),
            node_index: u32::try_from(at).ok()?,
            first_rank: place.ranks.first().unwrap_or(0),
            total_tasks: record.total_tasks,
            cpus_per_task: group.cpus_per_task.max(1),
            cores: share.cores.clone(),
            gpus: share.gpus.clone().unwrap_or(order.gpus),
            walltime_seconds: launched.walltime_seconds.or(launched.warning.and(order.walltime_seconds)),
            checkpoint: None,
            dialect: launched.dialect.clone().or_else(|| spec.dialect.clone()),
            ..order
        };
        let tasks = StepTasks {
            ranks: place.ranks.clone(),
            programs,
            variables: launched.variables.clone(),
            streams: StepStreams { stdin: launched.stdin_of(group).clone(), ..launched.streams.clone() },
            ends_on_failure: launched.ends_on_failure,
            process_group: record.process_group.clone(),
            binding: group.binding.clone(),
            bound: share.bound.clone(),
            gpu_binding: group.gpu_binding.clone(),
            gpus_of_job,
        };
        Some(NodeOrder::Launch { order: Box::new(launch), tasks: Some(Box::new(tasks)) })
    }
}
