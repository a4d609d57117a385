//! Nodes, partitions and steps, as several commands list them.

use super::site::Site;
use muster_client::Moment;
use muster_schemas::{
    JobId, Timestamp,
    event::EndCause,
    job::{ExitStatus, Usage},
    resources::IndexSet,
    views::{NodeView, ReservationView, StepDetail, StepNodeDetail},
};
use muster_slurm::{
    attributes::{Attributes, component},
    job_id::StepName,
    options::values::Distribution,
    queries::{Failure, reservation_flags::Flags},
    show::{
        record::{JobRecord, of_detail},
        sinfo::{NodeRecord, Partition},
        step::StepRecord,
    },
    steps::worst,
    words::{ExitCode, NodeFacts, State},
};
use std::{collections::BTreeMap, sync::Arc};

/// All nodes.
pub fn nodes(site: &mut Site) -> Result<Vec<Arc<NodeRecord>>, Failure> {
    let page = site.client.nodes(Moment::Now).map_err(|error| site.failure(&error))?;
    // Most sites have no reservations, and then there is no request for them.
    let reservations = match page.nodes.iter().any(|node| !node.reservations.is_empty()) {
        true => site.client.reservations(Moment::Now).map_err(|error| site.failure(&error))?.reservations,
        false => Vec::new(),
    };
    let record = |view: &NodeView| {
        let is_its = |known: &&ReservationView| known.begun && view.reservations.contains(&known.spec.name);
        let begun: Vec<&ReservationView> = reservations.iter().filter(is_its).collect();
        let is_maintained = begun.iter().any(|known| Flags::of(&known.spec).has("MAINT"));
        let facts = NodeFacts {
            is_declared_down: view.is_down,
            is_reserved: !begun.is_empty(),
            is_maintained,
            ..NodeFacts::default()
        };
        let names: Vec<&str> = begun.iter().map(|known| known.spec.name.as_str()).collect();
        Arc::new(NodeRecord { reservation: names.join(","), ..NodeRecord::of(view, facts, site.clock.now) })
    };
    Ok(page.nodes.iter().map(record).collect())
}

/// All partitions, by name.
pub fn partitions(site: &mut Site) -> Result<Vec<Arc<Partition>>, Failure> {
    Ok(site.queues()?.queues.iter().map(|queue| Arc::new(Partition::of(queue))).collect())
}

/// The running steps of all jobs.
pub fn running_steps(site: &mut Site) -> Result<Vec<StepRecord>, Failure> {
    let page = site.client.running_steps(Moment::Now).map_err(|error| site.failure(&error))?;
    let mut by_job: BTreeMap<_, Vec<StepDetail>> = BTreeMap::new();
    for step in page.steps {
        by_job.entry(step.job).or_default().push(step);
    }
    let jobs: Vec<JobId> = by_job.keys().copied().collect();
    let mut steps = Vec::new();
    for detail in site.details(&jobs, false)?.jobs {
        let records = site.with_sources(|sources| of_detail(&detail, sources));
        steps.extend(step_records(by_job.get(&detail.job.id).map_or(&[], Vec::as_slice), &records));
    }
    steps.retain(|step| step.ended.is_none());
    Ok(steps)
}

/// The steps of a job, once for each component that takes part (SL-A-05).
pub fn step_records(steps: &[StepDetail], records: &[JobRecord]) -> Vec<StepRecord> {
    let pairs = steps.iter().flat_map(|step| records.iter().map(move |record| (step, record)));
    pairs.filter_map(|(step, record)| step_record(step, record)).collect()
}

/// Steps count from 1 in the core, where 0 is the batch script; Slurm's numbers count from 0.
fn step_record(step: &StepDetail, record: &JobRecord) -> Option<StepRecord> {
    let number = u32::try_from(u64::from(step.step.0)).ok()?.checked_sub(1)?;
    let offset = record.het.as_ref().map_or(0, |het| het.offset);
    let nodes: Vec<_> = step.nodes.iter().filter(|node| node.component == offset).collect();
    if nodes.is_empty() {
        return None;
    }
    let mut line = StepRecord::of_job(record, StepName::Number(number), &step.name);
    line.started = Some(step.launched);
    line.ended = own_end(&nodes).or(step.ended);
    line.limit_seconds = step.walltime_seconds;
    line.nodes = nodes.iter().map(|node| node.node.clone()).collect();
    line.tasks = nodes.iter().map(|node| node.tasks).sum();
    line.cpus = nodes.iter().map(|node| node.cores.len()).sum();
    line.gpus = gpus_of(&nodes, record);
    let distribution = Attributes(&step.attributes).component(offset as usize, component::DISTRIBUTION);
    line.distribution = distribution.and_then(Distribution::parse).unwrap_or_default();
    let exits = nodes.iter().filter_map(|node| node.exit.as_ref());
    line.usage = exits.map(|exit| exit.usage).fold(Usage::default(), Usage::plus);
    let status = line.ended.and_then(|_| own_status(step, &nodes));
    line.exit = status.map(ExitCode::of_status).unwrap_or_default();
    line.state = if line.ended.is_none() { State::Running } else { ended_state(step, status, &nodes) };
    if line.state == State::OutOfMemory {
        line.exit = ExitCode::OUT_OF_MEMORY;
    }
    if line.state == State::Failed && is_ended_by_limit(record, &line, status) {
        line.state = State::Cancelled;
    }
    // A component has ended while the rest of the step keeps running (SL-M-15).
    if step.ended.is_none() && record.state.is_finished() {
        (line.ended, line.state) = (record.ended, State::Cancelled);
    }
    Some(line)
}

/// The GPUs of a step: those that it keeps to itself, or all of its job if it shares them on all the job's nodes.
fn gpus_of(nodes: &[&StepNodeDetail], record: &JobRecord) -> u64 {
    let is_shared = nodes.iter().all(|node| node.gpus.is_none());
    if is_shared && nodes.len() == record.nodes.len() {
        return record.gpus;
    }
    nodes.iter().filter_map(|node| node.gpus.as_ref()).map(IndexSet::len).sum()
}

/// Whether the signal that ended a step came because its job reached its time limit.
fn is_ended_by_limit(record: &JobRecord, line: &StepRecord, status: Option<ExitStatus>) -> bool {
    // The limit counts from a moment before the node reported the start.
    let least = |limit: u64| i64::try_from(limit.saturating_sub(1)).ok();
    let ends =
        record.started.zip(record.limit_seconds).and_then(|(started, limit)| Some(started.plus_seconds(least(limit)?)));
    let is_signal = matches!(status, Some(ExitStatus::Signal(9 | 15)));
    record.state == State::Timeout && is_signal && line.ended >= ends && ends.is_some()
}

/// When the tasks on these nodes ended, if all have: a component's part of a step can end before the rest (SL-M-15).
fn own_end(nodes: &[&StepNodeDetail]) -> Option<Timestamp> {
    let ends: Option<Vec<Timestamp>> = nodes.iter().map(|node| node.exit.as_ref().map(|exit| exit.ended)).collect();
    ends?.into_iter().max()
}

/// How the tasks on these nodes ended: the highest status counts, as for `srun` (SL-R-23). For tasks that were not
/// reported separately, the status of their node counts.
fn own_status(step: &StepDetail, nodes: &[&StepNodeDetail]) -> Option<ExitStatus> {
    let ranks = nodes.iter().fold(IndexSet::new(), |all, node| all.union(&node.ranks));
    let told = step.statuses.iter().filter(|told| !told.ranks.intersection(&ranks).is_empty()).map(|told| told.status);
    let of_nodes = nodes.iter().filter_map(|node| node.exit.as_ref()?.status);
    let statuses: Vec<ExitStatus> = told.chain(of_nodes).collect();
    if statuses.is_empty() { step.exit_status } else { Some(worst(statuses)) }
}

/// How a step ended in the component with these nodes.
fn ended_state(step: &StepDetail, status: Option<ExitStatus>, nodes: &[&StepNodeDetail]) -> State {
    let ended_by = |cause: EndCause| nodes.iter().filter_map(|node| node.exit.as_ref()).any(|exit| exit.cause == cause);
    let mut exits = step.nodes.iter().filter_map(|node| node.exit.as_ref());
    let is_aborted = exits.any(|exit| matches!(exit.cause, EndCause::Aborted(_)));
    match status {
        // If tasks used too much memory, the others may have been stopped for that.
        _ if ended_by(EndCause::OutOfMemory) => State::OutOfMemory,
        _ if is_aborted => State::Failed,
        _ if ended_by(EndCause::Killed) => State::Cancelled,
        // A step that reached its own limit timed out; the limit of its job cancels it.
        _ if ended_by(EndCause::Walltime) && step.walltime_seconds.is_some() => State::Timeout,
        _ if ended_by(EndCause::Walltime) => State::Cancelled,
        // The end of other components does not matter for one that has completed.
        Some(status) if status.is_success() => State::Completed,
        _ if step.is_stopping => State::Cancelled,
        _ => State::Failed,
    }
}
