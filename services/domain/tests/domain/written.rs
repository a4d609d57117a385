//! Orders as nodes get them: from a seed, its sketch, and what the log would contribute.

use muster_domain::{
    State,
    orders::{OrderSeed, Sketch, Sketches, StepRecord, StepSketch},
};
use muster_schemas::{
    NodeId, PartId, Sequence, StepId,
    job::JobSpec,
    node::{LaunchOrder, NodeOrder},
    steps::{StepSpec, StepTasks},
    tasks::TaskList,
};

const NOWHERE: Sequence = Sequence(0);

pub fn launch_order(state: &State, part: PartId, node: NodeId, spec: &JobSpec) -> Option<LaunchOrder> {
    launch_order_of(&mut Sketches::new(state), part, node, spec)
}

pub fn launch_order_of(sketches: &mut Sketches<'_>, part: PartId, node: NodeId, spec: &JobSpec) -> Option<LaunchOrder> {
    match sketches.sketch(node, OrderSeed::Launch { part, submitted_sequence: NOWHERE })? {
        Sketch::Launch { part, nodes, .. } => part.launch_order(&nodes, spec),
        other => panic!("{other:?}"),
    }
}

pub fn hold_order(state: &State, part: PartId, node: NodeId, spec: &JobSpec) -> Option<LaunchOrder> {
    match Sketches::new(state).sketch(node, OrderSeed::Hold { part, submitted_sequence: NOWHERE })? {
        Sketch::Hold { part, nodes, .. } => part.hold_order(&nodes, spec),
        other => panic!("{other:?}"),
    }
}

fn step_sketch(state: &State, part: PartId, node: NodeId, step: StepId) -> Option<Sketch> {
    let seed = OrderSeed::LaunchStep { part, step, submitted_sequence: NOWHERE, started_sequence: NOWHERE };
    Sketches::new(state).sketch(node, seed)
}

pub fn tasks_order(
    state: &State,
    part: PartId,
    node: NodeId,
    step: StepId,
    spec: &JobSpec,
    launched: &StepSpec,
) -> Option<(LaunchOrder, StepTasks)> {
    let record = StepRecord::new(launched.clone());
    match step_sketch(state, part, node, step)? {
        Sketch::Step { part, step: StepSketch { step, at, share }, .. } => {
            match part.tasks_order((step, at), &share, spec, &record)? {
                NodeOrder::Launch { order, tasks: Some(tasks) } => Some((*order, *tasks)),
                other => panic!("{other:?}"),
            }
        }
        other => panic!("{other:?}"),
    }
}

pub fn task_order(
    state: &State,
    part: PartId,
    node: NodeId,
    step: StepId,
    spec: &JobSpec,
    list: &TaskList,
) -> Option<LaunchOrder> {
    match Sketches::new(state).sketch(node, OrderSeed::LaunchTask { part, step, listed_sequence: NOWHERE })? {
        Sketch::Task { part, task, .. } => task.order(&part, spec, list),
        other => panic!("{other:?}"),
    }
}
