//! Orders about steps with places of their own.

use super::{OrderSeed, kill_grace, order};
use crate::state::{AtOnce, LaunchedPart, LaunchedStep, Run, State};
use muster_schemas::{
    NodeId, PartId, RunId, StepId,
    job::{JobSpec, Launch, Program},
    node::{LaunchOrder, OrderNode, TasksOrder},
    steps::{GroupTerms, StepSpec, StepStreams, StepTasks},
};
use std::sync::Arc;

/// An order to the nodes of a step, or to those of one component, where it has not ended.
pub(super) fn to_parts(
    state: &State,
    run: RunId,
    step: StepId,
    component: Option<u32>,
    order: impl Fn(&Run, &LaunchedStep, &LaunchedPart) -> Option<OrderSeed>,
) -> Vec<(NodeId, OrderSeed)> {
    let Some((run, launched)) = state.run(run).and_then(|run| Some((run, state.launched_step(run.id, step)?))) else {
        return Vec::new();
    };
    let ends = run.steps.get(&step).map(|step| step.parts.as_slice()).unwrap_or_default();
    let live = launched.parts.iter().zip(ends).filter(|(_, end)| end.exit.is_none()).map(|(part, _)| part);
    let parts = live.filter(|part| component.is_none_or(|one| one == part.share.component));
    parts.filter_map(|part| Some((part.share.node, order(run, launched, part)?))).collect()
}

/// The part of a run that a part of a step is in.
pub(super) fn inside(state: &State, run: &Run, part: &LaunchedPart) -> PartId {
    state.part_id_at(run, part.share.node, part.share.component)
}

/// The order to end a part that is being ended.
pub(super) fn stop(
    state: &State,
    run: &Run,
    step: StepId,
    launched: &LaunchedStep,
    part: &LaunchedPart,
) -> Option<OrderSeed> {
    let grace_seconds = match part.stopping? {
        AtOnce::Yes => 0,
        AtOnce::No => launched.kill_grace_seconds.unwrap_or_else(|| kill_grace(state, run)),
    };
    Some(OrderSeed::StopStep { part: inside(state, run, part), step, grace_seconds })
}

/// Everything that a node needs to start its tasks of a step; `launched` is what the record of its launch says, with the terms
/// of its groups in the record behind it.
pub fn tasks_order(
    state: &State,
    part: PartId,
    node: NodeId,
    step: StepId,
    spec: &JobSpec,
    (launched, terms): (&StepSpec, &[GroupTerms]),
) -> Option<TasksOrder> {
    let (run, of_run) = state.part_named(node, part)?;
    let known = state.launched_step(run.id, step)?;
    let at = known.position(node, of_run.component)?;
    let (part, (group, place)) = (known.parts.get(at)?, launched.places().nth(at)?);
    let component = spec.components.get(of_run.component as usize)?;
    let group_index = launched.groups_of_places().nth(at)?;
    let working_directory = launched.working_directory_of(terms, group_index).unwrap_or(&spec.working_directory);
    let programs: Vec<_> =
        group.programs.iter().filter(|program| !program.ranks.intersection(&place.ranks).is_empty()).cloned().collect();
    let argv = programs.first()?.argv.clone();
    let kill_grace_seconds = launched.kill_grace_seconds;
    let launch = Launch { program: Program::Tasks { argv }, kill_grace_seconds, ..Launch::default() };
    let order = order(state, run, of_run, spec, component, launch, (Arc::default(), &vec![0; run.parts.len()]))?;
    let nodes = launched.places().map(|(group, place)| OrderNode {
        name: place.node.clone(),
        tasks: u32::try_from(place.ranks.len()).unwrap_or(u32::MAX),
        component: group.component,
    });
    let mut environment = launched.environment.clone().unwrap_or_else(|| spec.environment.clone());
    environment.extend(group.environment.clone());
    let launch = LaunchOrder {
        step,
        environment,
        working_directory: working_directory.clone(),
        umask: launched.umask.or(spec.umask),
        nodes: Arc::new(nodes.collect()),
        node_index: u32::try_from(at).ok()?,
        first_rank: place.ranks.first().unwrap_or(0),
        total_tasks: launched.total_tasks(),
        cpus_per_task: group.cpus_per_task.max(1),
        cores: part.share.cores.clone(),
        walltime_seconds: launched.walltime_seconds,
        checkpoint: None,
        ..order
    };
    let tasks = StepTasks {
        ranks: place.ranks.clone(),
        programs,
        variables: launched.variables.clone(),
        streams: StepStreams { stdin: launched.stdin_of(terms, group_index).clone(), ..launched.streams.clone() },
        ends_on_failure: launched.ends_on_failure,
    };
    Some(TasksOrder { launch, tasks })
}
