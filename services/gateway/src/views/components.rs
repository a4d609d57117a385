//! Single components in the API.

use super::Size;
use muster_domain::{
    State,
    jobs::{Component, Job},
};
use muster_schemas::{
    NodeId, RunId, Timestamp,
    event::{Actor, Event, Record, StopReason},
    job::{JobState, Outcome},
    plan::PlannedComponent,
    resources::{ComponentPlacement, Placement},
    views::{CancelView, ComponentView},
};

/// The components of a job that has several.
pub(super) fn views(
    state: &State,
    job: &Job,
    job_state: JobState,
    placement: Option<&Placement>,
) -> Vec<ComponentView> {
    if job.components.len() < 2 {
        return Vec::new();
    }
    let planned = state.backfill_passes().jobs.get(&job.id);
    let views = job.components.iter().zip(0..).map(|(component, number)| {
        let end = job.single_end(number).filter(|_| placement.is_some());
        // Its former resources, if it has given them back.
        let had = end.and_then(|end| end.over.as_ref()).map(|over| &over.placement);
        let placed = had.or_else(|| placement?.components.get(number as usize));
        let ended = job.component_ended(number).filter(|_| end.is_some());
        let mut view = view(state, component, job_state, placed);
        view.is_stopped = is_stopped(state, job, number);
        if job.is_waiting() {
            let planned = planned.and_then(|planned| planned.get(number as usize));
            (view.expected_start, view.planned_nodes) = expected(state, job, number, planned);
        }
        match (end, ended) {
            (Some(_), Some((at, outcome))) => {
                ComponentView { state: JobState::Finished, outcome: Some((&outcome).into()), ended: Some(at), ..view }
            }
            (Some(_), None) => ComponentView { state: JobState::Finishing, ..view },
            (None, _) => view,
        }
    });
    views.collect()
}

/// When and where a component of a waiting job is expected to start: by the last backfill pass, or together with the
/// others as promised or foreseen.
fn expected(
    state: &State,
    job: &Job,
    number: u32,
    planned: Option<&PlannedComponent>,
) -> (Option<Timestamp>, Vec<String>) {
    let names =
        |nodes: &mut dyn Iterator<Item = NodeId>| nodes.map(|node| state.node_name(node).into_owned()).collect();
    if let Some(planned) = planned {
        return (planned.start, names(&mut planned.nodes.iter().copied()));
    }
    let Some(slot) = &job.slot else { return (job.predicted_start, Vec::new()) };
    let placed = slot.placement.components.get(number as usize);
    let mut nodes = placed.into_iter().flat_map(|placed| placed.shares.iter().map(|share| share.node));
    (Some(slot.start), names(&mut nodes))
}

fn view(
    state: &State,
    component: &Component,
    job_state: JobState,
    placed: Option<&ComponentPlacement>,
) -> ComponentView {
    let shares = placed.map(|placed| placed.shares.as_slice()).unwrap_or_default();
    let size = match placed {
        Some(_) => Size::of_shares(shares.iter()),
        None => Size::asked(std::slice::from_ref(component)),
    };
    let alternatives = &component.shape.alternatives;
    let chosen = alternatives.get(placed.map_or(0, |placed| placed.alternative as usize)).or(alternatives.first());
    let extras = component.extras.as_deref();
    ComponentView {
        queue: component.queue.to_string(),
        account: component.account.as_deref().map(str::to_owned),
        class: extras.and_then(|extras| extras.class.as_deref()).map(str::to_owned),
        priority: component.priority,
        class_priority: state.accounts().class_priority(component),
        state: job_state,
        holds: component.holds,
        outcome: None,
        ended: None,
        begin: extras.and_then(|extras| extras.begin),
        reservation: component.reservation().map(|name| name.to_string()),
        walltime_seconds: chosen.and_then(|alternative| alternative.walltime_seconds),
        nodes: shares.iter().map(|share| state.node_name(share.node).into_owned()).collect(),
        node_count: size.nodes,
        tasks: size.tasks,
        cores: size.cores,
        expected_start: None,
        planned_nodes: Vec::new(),
        is_stopped: false,
    }
}

/// Whether a signal has stopped processes of a component.
pub(super) fn is_stopped(state: &State, job: &Job, component: u32) -> bool {
    job.run().and_then(|run| state.run(run)).is_some_and(|run| run.stopped.contains(component))
}

/// Who cancelled a job or one of its components, from its records.
pub(crate) fn cancels(records: &[Record]) -> Vec<CancelView> {
    records.iter().filter_map(cancel).collect()
}

fn cancel(record: &Record) -> Option<CancelView> {
    let Actor::User(owner) = &*record.actor else { return None };
    let End { run, component, .. } = asked_end(&record.event).filter(|end| end.is_cancel)?;
    Some(CancelView { at: record.time, run, component, user: owner.user.clone(), uid: owner.uid })
}

/// The end of a job, or of what it has.
struct End {
    run: Option<RunId>,
    component: Option<u32>,
    /// It is the end of what somebody cancelled.
    is_cancel: bool,
}

/// The end that an event is or leads to; `None` for kinds of events by which nobody cancels anything.
fn asked_end(event: &Event) -> Option<End> {
    let stop = |run: &RunId, component, reason: &StopReason| {
        let is_cancel = matches!(reason, StopReason::Cancelled | StopReason::CancelledAtOnce);
        End { run: Some(*run), component, is_cancel }
    };
    Some(match event {
        Event::RunStopping { run, reason, .. } | Event::TasksStopping { run, reason, .. } => stop(run, None, reason),
        Event::ComponentStopping { run, component, reason, .. } => stop(run, Some(*component), reason),
        Event::JobFinished { outcome, .. }
        | Event::JobEndRequested { outcome, .. }
        | Event::TasksFinished { outcome, .. } => {
            End { run: None, component: None, is_cancel: *outcome == Outcome::Cancelled }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{event::Concern, testing::assert_handles};

    #[test]
    fn cancels_are_told_from_what_the_table_of_events_says() {
        assert_handles(Concern::Cancels, |record| asked_end(&record.event).is_some());
    }
}
