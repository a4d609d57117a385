//! Orders to nodes: the domain says which follow from a record, the log has what they launch.

use crate::{
    descriptions::{Described, described},
    log::{Log, LogError},
    tokens::JobTokens,
};
use muster_domain::{
    State,
    orders::{self, OrderSeed, RunNodes},
    state::Node,
};
use muster_schemas::{
    cluster::NodeCondition,
    event::Event,
    ids::{NodeId, PartId, Sequence, StepId},
    job::Program,
    node::{LaunchOrder, NODE_CORES_VARIABLE, NodeOrder, node_cores_text},
    steps::GroupTerms,
};

/// Whether the log knows that a node is up since this boot, so that a sign of life is no news.
pub(crate) fn is_up(node: &Node, boot_id: &str) -> bool {
    node.condition == NodeCondition::Up && node.boot_id == boot_id
}

/// What a node that reports may have missed.
pub(crate) fn reconcile(
    state: &State,
    node: NodeId,
    reported: &[PartId],
    log: &Log,
    tokens: &JobTokens,
) -> Vec<NodeOrder> {
    let seeds = orders::reconcile(state, node, reported);
    let mut lists = Lists::default();
    let orders = seeds.into_iter().filter_map(|seed| complete(state, node, seed, log, &mut lists));
    orders.map(|order| tokens.give(order)).collect()
}

/// The job that was last asked for. Orders about one mostly come together, to many nodes or of many tasks, and its record can be long:
/// it is read once.
#[derive(Default)]
pub(crate) struct Lists {
    last: Option<(Sequence, Described)>,
    nodes: RunNodes,
}

impl Lists {
    fn described(&mut self, log: &Log, sequence: Sequence) -> Result<Described, LogError> {
        match &self.last {
            Some((known, found)) if *known == sequence => Ok(found.clone()),
            _ => {
                let found = described(log, sequence)?;
                self.last = Some((sequence, found.clone()));
                Ok(found)
            }
        }
    }
}

/// The order of a seed. `None` if there is nothing to do any more, or the log cannot say what to launch: the node's
/// heartbeats bring it up again.
pub(crate) fn complete(
    state: &State,
    node: NodeId,
    seed: OrderSeed,
    log: &Log,
    lists: &mut Lists,
) -> Option<NodeOrder> {
    let mut kind: fn(Box<LaunchOrder>) -> NodeOrder = NodeOrder::Launch;
    let order = match seed {
        OrderSeed::Launch { part, submitted_sequence } => launch(state, part, node, submitted_sequence, (log, lists)),
        OrderSeed::LaunchStep { part, step, submitted_sequence, started_sequence } => {
            let records = (submitted_sequence, started_sequence);
            return given(launch_step(state, part, node, step, records, (log, lists)));
        }
        OrderSeed::Hold { part, submitted_sequence } => {
            kind = NodeOrder::Hold;
            lists.described(log, submitted_sequence).map(|(spec, _)| orders::hold_order(state, part, node, &spec))
        }
        OrderSeed::LaunchTask { part, step, listed_sequence } => {
            launch_task(state, part, node, step, listed_sequence, (log, lists))
        }
        OrderSeed::Tell { part, told_sequence } => return given(tell(part, told_sequence, log)),
        other => return other.to_order(state, node),
    };
    given(order.map(|order| order.map(|order| kind(Box::new(order)))))
}

fn given(order: Result<Option<NodeOrder>, LogError>) -> Option<NodeOrder> {
    order.unwrap_or_else(|error| {
        tracing::error!(%error, "what is to be launched cannot be read");
        None
    })
}

fn tell(part: PartId, told: Sequence, log: &Log) -> Result<Option<NodeOrder>, LogError> {
    match log.record(told)?.map(|record| record.event) {
        Some(Event::JobTold { text, .. }) => Ok(Some(NodeOrder::Tell { part, text })),
        _ => Err(LogError::DamagedRecord { sequence: told, detail: "it should be something said to a job".into() }),
    }
}

fn launch(
    state: &State,
    part: PartId,
    node: NodeId,
    submitted: Sequence,
    (log, lists): (&Log, &mut Lists),
) -> Result<Option<LaunchOrder>, LogError> {
    let order = orders::launch_order_among(state, part, node, &lists.described(log, submitted)?.0, &mut lists.nodes);
    Ok(order.map(|order| with_node_cores(state, node, order)))
}

/// A script is told what the job has on its other nodes; nothing else asks for it (SL-E-03).
fn with_node_cores(state: &State, node: NodeId, mut order: LaunchOrder) -> LaunchOrder {
    let is_asked = matches!(order.launch.program, Program::Script { .. }) && order.nodes.len() > 1;
    if let Some((run, _)) = state.part_named(node, order.part).filter(|_| is_asked) {
        let cores = node_cores_text(run.placement.shares().map(|share| share.cores.len()));
        order.environment.insert(NODE_CORES_VARIABLE.to_owned(), cores);
    }
    order
}

fn launch_task(
    state: &State,
    part: PartId,
    node: NodeId,
    step: StepId,
    listed: Sequence,
    (log, lists): (&Log, &mut Lists),
) -> Result<Option<LaunchOrder>, LogError> {
    let (spec, tasks) = lists.described(log, listed)?;
    let no_tasks = || LogError::DamagedRecord { sequence: listed, detail: "it should list tasks".into() };
    Ok(orders::task_order(state, part, node, step, &spec, &*tasks.ok_or_else(no_tasks)?))
}

fn launch_step(
    state: &State,
    part: PartId,
    node: NodeId,
    step: StepId,
    (submitted, started): (Sequence, Sequence),
    (log, lists): (&Log, &mut Lists),
) -> Result<Option<NodeOrder>, LogError> {
    let (spec, _) = lists.described(log, submitted)?;
    match log.record(started)?.map(|record| record.event) {
        Some(Event::StepStarted { launch, .. }) => {
            let order = orders::step_order(state, part, node, step, &spec, &launch);
            Ok(order.map(|order| NodeOrder::Launch(Box::new(order))))
        }
        Some(Event::StepLaunched { spec: launched, .. }) => {
            let terms = terms_of(log, step, started.next())?;
            let order = orders::tasks_order(state, part, node, step, &spec, (&launched, &terms));
            Ok(order.map(|order| NodeOrder::LaunchTasks(Box::new(order))))
        }
        _ => Err(LogError::DamagedRecord { sequence: started, detail: "it should be the start of a step".into() }),
    }
}

/// What the groups of a step have of their own: in the record behind that of its launch, if they have something.
fn terms_of(log: &Log, launched: StepId, behind: Sequence) -> Result<Vec<GroupTerms>, LogError> {
    match log.record(behind)?.map(|record| record.event) {
        Some(Event::StepTermsSet { step, groups, .. }) if step == launched => Ok(groups),
        _ => Ok(Vec::new()),
    }
}
