//! Orders to nodes: those that follow from a record, and those that a reporting node may have missed.
//!
//! Orders can be lost or arrive twice. An executor obeys each once, by part and step, so repeating them is harmless.
//!
//! An order is made in three steps: a [seed](OrderSeed) says what to do with which part; a [sketch](Sketch) holds what
//! the state knows about it, and no longer needs the state; the order itself also has what only the log knows, such as
//! the script.

mod launch;
mod seed;
mod sketch;

pub use crate::{steps::orders::StepRecord, tasks::orders::TaskSketch};
pub use launch::{LaunchSketch, RunNodes, RunSketch};
pub use seed::OrderSeed;
pub use sketch::{Sketch, Sketches, StepSketch};

use crate::{
    copies,
    jobs::Job,
    runs::{
        Part, PartState, Run, Suspension,
        orders::{kill_grace, launch},
        walltime::walltime_of_part,
    },
    state::State,
    steps,
    tasks::orders::{grown, shrunk, stop_grace, task_stops},
};
use muster_schemas::{
    JobId, NodeId, PartId, RunId, Sequence, StepId,
    event::{Event, JobChange, Record, ShrinkReason, StopReason},
    resources::NodeShare,
};

/// The orders that follow from a record. The state must include it and may include later ones.
pub fn follow_up(state: &State, record: &Record) -> Vec<(NodeId, OrderSeed)> {
    orders_of(state, record).unwrap_or_default()
}

/// The same; `None` for events without orders.
fn orders_of(state: &State, record: &Record) -> Option<Vec<(NodeId, OrderSeed)>> {
    Some(match &record.event {
        Event::RunAllocated { run, .. } | Event::RunAwake { run, .. } => launching(state, *run),
        Event::RunGrown { run, added, .. } => grown(state, *run, added),
        Event::RunShrunk { run, removed, .. } => shrunk(state, *run, removed),
        Event::RunShrinking { run, reason: ShrinkReason::Asked, .. } => to_unended(state, *run, |run, of_run, part| {
            stop_part(state, run, of_run, part).filter(|_| !run.keeps(of_run.node))
        }),
        Event::RunShrinking { run, .. } | Event::TasksStopping { run, .. } => task_stops(state, *run),
        Event::TaskStarted { run, step, .. } => step_launches(state, *run, *step),
        Event::RunStopping { run, .. } => to_unended(state, *run, |run, _, part| Some(stop(state, run, part))),
        Event::ComponentStopping { run, component, .. } => to_unended(state, *run, |run, of_run, part| {
            stop_part(state, run, of_run, part).filter(|_| of_run.component == *component)
        }),
        Event::JobSignalled { run, signal, .. } => {
            to_unended(state, *run, |_, _, part| Some(OrderSeed::Signal { part, signal: *signal }))
        }
        // Its processes are stopped already.
        Event::JobSuspended { was_resuming: true, .. } => Vec::new(),
        Event::JobSuspended { run, .. } => to_unended(state, *run, |_, _, part| Some(OrderSeed::Suspend { part })),
        Event::JobResumed { run, .. } => to_unended(state, *run, |_, _, part| Some(OrderSeed::Resume { part })),
        Event::JobModified { job, change } => walltime_orders(state, *job, change),
        Event::StepLaunched { run, step, .. } => step_launches(state, *run, *step),
        Event::StepStopping { run, step, component, .. } => {
            steps::orders::to_parts(state, *run, *step, *component, |run, launched, part, inside| {
                steps::orders::stop(state, run, *step, launched, (part, inside))
            })
        }
        Event::StepWalltimeSet { run, step, .. } => {
            steps::orders::to_parts(state, *run, *step, None, |_, launched, _, part| {
                Some(steps::orders::set_walltime(*step, launched, part))
            })
        }
        Event::StepSignalled { run, step, component, signal, .. } => {
            let order = |part| OrderSeed::SignalStep { part, step: *step, signal: *signal };
            match *step {
                StepId(0) => to_lead(state, *run, order),
                _ => steps::orders::to_parts(state, *run, *step, *component, |_, _, _, inside| Some(order(inside))),
            }
        }
        Event::RunEnded { job, run, .. } => forget(state, *job, *run),
        Event::CopyingBegan { job, .. } => copies::orders::begin(state, *job).into_iter().collect(),
        Event::CopyingEnded { job, .. } => {
            state.job(*job).and_then(Job::run).map(|run| launching(state, run)).unwrap_or_default()
        }
        Event::JobFinished { job, .. } => copies::orders::drop(state, *job).into_iter().collect(),
        Event::JobTold { run, .. } => {
            to_lead(state, *run, |part| OrderSeed::Tell { part, told_sequence: record.sequence })
        }
        _ => return None,
    })
}

/// An order to the part that runs a script.
fn to_lead(state: &State, run: RunId, order: impl Fn(PartId) -> OrderSeed) -> Vec<(NodeId, OrderSeed)> {
    let lead = state.run(run).and_then(|run| Some((run, run.lead()?)));
    lead.map(|(run, lead)| (lead.node, order(state.part_id(run, lead)))).into_iter().collect()
}

fn launching(state: &State, run: RunId) -> Vec<(NodeId, OrderSeed)> {
    to_unended(state, run, |run, of_run, part| {
        let is_ready = run.stopping.is_none() && run.may_launch();
        let is_due = is_ready && of_run.state == PartState::Launching;
        is_due.then(|| launch(state, run, part)).flatten()
    })
}

/// An order for each part that has not ended.
fn to_unended(
    state: &State,
    run: RunId,
    order: impl Fn(&Run, &Part, PartId) -> Option<OrderSeed>,
) -> Vec<(NodeId, OrderSeed)> {
    let Some(run) = state.run(run) else { return Vec::new() };
    let names = state.part_names(run);
    let parts = run.parts.iter().filter(|part| !part.has_ended());
    let order = |part: &Part| Some((part.node, order(run, part, names.of_part(part.node, part.component))?));
    parts.filter_map(order).collect()
}

/// The order to end a part, if its run or its component is being ended, or its node is given up.
fn stop_part(state: &State, run: &Run, of_run: &Part, part: PartId) -> Option<OrderSeed> {
    let end = || state.job(run.job)?.single_end(of_run.component);
    let given_up = || (!run.keeps(of_run.node)).then_some(StopReason::PeerEnded);
    let reason = run.stopping.or_else(|| end().map(|end| end.reason)).or_else(given_up)?;
    Some(stop_for(state, run, part, reason))
}

fn stop(state: &State, run: &Run, part: PartId) -> OrderSeed {
    stop_for(state, run, part, run.stopping.unwrap_or(StopReason::NodeLost))
}

fn stop_for(state: &State, run: &Run, part: PartId, reason: StopReason) -> OrderSeed {
    let grace_seconds = match reason {
        StopReason::CancelledAtOnce | StopReason::FinishedAtOnce => 0,
        StopReason::Preempted => {
            let more = state.job(run.job).map_or(0, |job| state.preemption_grace_seconds(job));
            kill_grace(state, run).saturating_add(more)
        }
        _ => run.stop_grace_seconds.unwrap_or_else(|| kill_grace(state, run)),
    };
    OrderSeed::Stop { part, reason, grace_seconds }
}

fn walltime_orders(state: &State, job: JobId, change: &JobChange) -> Vec<(NodeId, OrderSeed)> {
    let run = state.job(job).and_then(Job::run).filter(|_| change.walltime_seconds.is_some());
    let Some(run) = run else { return Vec::new() };
    to_unended(state, run, |run, of_run, part| Some(set_walltime(state, run, of_run, part)))
}

fn set_walltime(state: &State, run: &Run, of_run: &Part, part: PartId) -> OrderSeed {
    let walltime_seconds = state.job(run.job).and_then(|job| walltime_of_part(job, run, of_run));
    OrderSeed::SetWalltime { part, walltime_seconds }
}

fn step_launches(state: &State, run: RunId, step: StepId) -> Vec<(NodeId, OrderSeed)> {
    let Some(run) = state.run(run) else { return Vec::new() };
    let parts = run.steps.get(&step).map_or(0, |step| step.parts.len());
    (0..parts).filter_map(|at| step_launch(state, run, step, at)).collect()
}

/// The order for a part of a step that has not ended, and its node.
fn step_launch(state: &State, run: &Run, step: StepId, at: usize) -> Option<(NodeId, OrderSeed)> {
    let node = run.steps.get(&step)?.parts.get(at).filter(|part| part.exit.is_none())?.node;
    if let Some((launched, part)) = state.step(run.id, step).and_then(|step| Some((step, step.parts.get(at)?))) {
        let inside = state.part_id_at(run, part.share.node, part.share.component);
        let stopping = steps::orders::stop(state, run, step, launched, (part, inside));
        let order = stopping.or_else(|| launch_step(state, run, inside, step));
        return Some((node, order?));
    }
    Some((node, launch_step(state, run, state.part_id(run, run.part(node)?), step)?))
}

/// The time limit of a part of a step, if its launch may have been ordered with another.
fn step_walltime(state: &State, run: &Run, step: StepId, at: usize) -> Option<OrderSeed> {
    run.steps.get(&step)?.parts.get(at).filter(|part| part.exit.is_none())?;
    let launched = state.step(run.id, step).filter(|launched| launched.walltime_changed)?;
    let share = &launched.parts.get(at)?.share;
    let inside = state.part_id_at(run, share.node, share.component);
    Some(steps::orders::set_walltime(step, launched, inside))
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
    let last = state.job(job).and_then(|job| Some((job, job.last_run.as_ref().filter(|last| last.run == run)?)));
    let Some((job, last)) = last else { return Vec::new() };
    let names = state.last_part_names(job, last);
    let forget = |(component, share): (u32, &NodeShare)| {
        (share.node, OrderSeed::Forget { part: names.of_part(share.node, component) })
    };
    last.placement.shares_by_component().map(forget).collect()
}

/// Whether a node had started a part and no longer knows it, given a list of its parts that is true for the record
/// `as_of` (see [`muster_schemas::node::Mark`]). A part that started later may be missing from the list and still run.
pub(crate) fn is_forgotten(state: &State, run: &Run, part: &Part, known: &[PartId], as_of: Sequence) -> bool {
    part.is_up() && part.since <= as_of && !known.contains(&state.part_id(run, part))
}

/// Whether a node that is up has forgotten something according to such a list, so that its report is news.
pub fn has_forgotten(state: &State, node: NodeId, known: &[PartId], as_of: Sequence) -> bool {
    let runs = state.node(node).into_iter().flat_map(|node| &node.runs).filter_map(|run| state.run(*run));
    runs.flat_map(|run| run.parts_on(node).map(move |part| (run, part)))
        .any(|(run, part)| is_forgotten(state, run, part, known, as_of))
}

/// The orders that a node may have missed, given the parts of runs that it knows. Launches come first.
pub fn reconcile(state: &State, node: NodeId, reported: &[PartId]) -> Vec<OrderSeed> {
    let mut orders = Vec::new();
    for run in state.node(node).into_iter().flat_map(|node| &node.runs).filter_map(|run| state.run(*run)) {
        for part in run.parts_on(node).filter(|part| !part.has_ended()) {
            let id = state.part_id(run, part);
            orders.extend(missed(state, run, (part, id), reported.contains(&id)));
        }
    }
    orders.extend(copies::orders::missed(state, node));
    let over = reported.iter().filter(|part| state.part_named(node, **part).is_none());
    // Its node was considered lost, or the report crossed the end of the run: anything left of it is stopped.
    orders.extend(over.map(|part| OrderSeed::Stop {
        part: *part,
        reason: StopReason::NodeLost,
        grace_seconds: state.settings().kill_grace_seconds,
    }));
    orders
}

fn missed(state: &State, run: &Run, (part, id): (&Part, PartId), is_known: bool) -> Vec<OrderSeed> {
    if let Some(stop) = stop_part(state, run, part, id) {
        return vec![stop];
    }
    let mut orders = Vec::new();
    if !is_known && part.state == PartState::Launching && run.may_launch() {
        orders.extend(launch(state, run, id));
    }
    let tasks = state.job(run.job).and_then(|job| job.tasks.as_ref());
    if is_known && tasks.is_some_and(|tasks| tasks.resized.contains(&part.node)) {
        orders.push(OrderSeed::Resize { part: id });
    }
    if run.walltime_changed {
        orders.push(set_walltime(state, run, part, id));
    }
    match run.suspension {
        Suspension::Never => {}
        Suspension::Suspended
        | Suspension::Lent
        | Suspension::Resuming(_)
        | Suspension::MadeWay { .. }
        | Suspension::Returning(_) => orders.push(OrderSeed::Suspend { part: id }),
        Suspension::Resumed => orders.push(OrderSeed::Resume { part: id }),
    }
    for step in run.steps.keys() {
        let at = run.step_position(*step, part);
        orders.extend(at.and_then(|at| step_launch(state, run, *step, at)).map(|(_, order)| order));
        orders.extend(at.and_then(|at| step_walltime(state, run, *step, at)));
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{event::Concern, testing::assert_handles};

    #[test]
    fn orders_follow_from_what_the_table_of_events_says() {
        assert_handles(Concern::Orders, |record| orders_of(&State::default(), record).is_some());
    }
}
