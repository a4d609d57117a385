//! Single components in the API.

use super::Size;
use muster_domain::{
    State,
    jobs::{Component, Job},
};
use muster_schemas::{
    NodeId, Timestamp,
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
        // What it had, if it has given it back since.
        let had = end.and_then(|end| end.over.as_ref()).map(|over| &over.placement);
        let placed = had.or_else(|| placement?.components.get(number as usize));
        let ended = job.component_ended(number).filter(|_| end.is_some());
        let mut view = view(state, component, job_state, placed);
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

/// When and where a component of a job that waits is thought to start: as the last backfill pass said, or together with
/// the others as promised or foreseen.
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
    }
}

/// Who cancelled a job or one of its components, from its records.
pub(crate) fn cancels(records: &[Record]) -> Vec<CancelView> {
    records.iter().filter_map(cancel).collect()
}

fn cancel(record: &Record) -> Option<CancelView> {
    let Actor::User(owner) = &*record.actor else { return None };
    let is_cancel = |reason: StopReason| matches!(reason, StopReason::Cancelled | StopReason::CancelledAtOnce);
    let (run, component) = match &record.event {
        Event::RunStopping { run, reason, .. } | Event::TasksStopping { run, reason, .. } if is_cancel(*reason) => {
            (Some(*run), None)
        }
        Event::ComponentStopping { run, component, reason, .. } if is_cancel(*reason) => (Some(*run), Some(*component)),
        Event::JobFinished { outcome: Outcome::Cancelled, .. }
        | Event::JobEndRequested { outcome: Outcome::Cancelled, .. }
        | Event::TasksFinished { outcome: Outcome::Cancelled, .. } => (None, None),
        _ => return None,
    };
    Some(CancelView { at: record.time, run, component, user: owner.user.clone(), uid: owner.uid })
}
