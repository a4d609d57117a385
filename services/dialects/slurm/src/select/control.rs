//! The targets of commands that change jobs.

use super::{is_named, names_leader};
use crate::{
    job_id::JobPart,
    queries::Failure,
    show::record::{ArrayTasks, JobRecord},
};
use muster_schemas::{ids::JobId, resources::IndexSet};
use std::collections::BTreeSet;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// End it, or send it a signal (`scancel`).
    Cancel,
    /// `scontrol hold`, `uhold`.
    Hold,
    /// `scontrol release`.
    Release,
    /// `scontrol requeue`, `requeuehold`.
    Requeue,
    /// `scontrol suspend`.
    Suspend,
    /// `scontrol resume`.
    Resume,
    /// `scontrol update`.
    Update,
}

/// The target: a job, array or task as the core knows it, or one component of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The job, array or task.
    pub job: JobId,
    /// The component; `None` means the whole job.
    pub component: Option<u32>,
}

/// The meaning of an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// Act on these.
    Targets(Vec<Target>),
    /// There is nothing to do, which is not a failure; this is the output of `-v` (SL-C-31).
    Nothing(String),
}

/// The exit status of `scancel` for a component that cannot be cancelled alone (SL-M-03).
const NOT_ALONE: u8 = 60;

/// The targets of an id for an action, given the current jobs. `whole_hetjob` is the setting of that name (SL-M-05).
///
/// # Errors
/// A job or component that does not exist, or that cannot be acted on alone; nothing is done then.
pub fn choose(action: Action, part: &JobPart, records: &[JobRecord], whole_hetjob: bool) -> Result<Chosen, Failure> {
    let named: Vec<&JobRecord> = records.iter().filter(|record| is_named(part, record)).collect();
    let Some(first) = named.first().copied() else { return unknown(action, part) };
    // If a component means its job, the others may still run.
    let leader = first.het.as_ref().map(|het| het.leader);
    let runs_on =
        |record: &JobRecord| record.het.as_ref().map(|het| het.leader) == leader && !record.state.is_finished();
    let stands_for_job = leader.is_some() && whole_hetjob && matches!(part, JobPart::Number(_));
    // A job that is ending may be requeued.
    let is_over = named.iter().all(|record| record.state.is_finished());
    if action == Action::Cancel && is_over && !(stands_for_job && records.iter().any(runs_on)) {
        return Ok(Chosen::Nothing(over(part)));
    }
    if first.het.is_some() {
        return component(action, part, first, whole_hetjob).map(|target| Chosen::Targets(vec![target]));
    }
    if action == Action::Requeue && named.iter().all(|record| record.state.is_pending()) {
        return Err(Failure::plain(format_args!("Job is pending execution for job {part}")));
    }
    if action == Action::Requeue && !first.request().is_requeued {
        return Err(not_requeued(part));
    }
    Ok(Chosen::Targets(tasks(part, &named)))
}

fn unknown(action: Action, part: &JobPart) -> Result<Chosen, Failure> {
    match action {
        Action::Cancel => Ok(Chosen::Nothing(format!("Kill job error on job id {part}: Invalid job id specified"))),
        _ => Err(Failure::plain(format_args!("Invalid job id specified for job {part}"))),
    }
}

/// The owner said that it must not run twice.
fn not_requeued(part: &JobPart) -> Failure {
    Failure::plain(format_args!("Requested operation is presently disabled for job {part}"))
}

fn over(part: &JobPart) -> String {
    format!("Kill job error on job id {part}: Job/step already completing or completed")
}

/// The rules for jobs with several components.
fn component(action: Action, part: &JobPart, record: &JobRecord, whole_hetjob: bool) -> Result<Target, Failure> {
    let (leader, offset) = record.het.as_ref().map_or((record.number, 0), |het| (het.leader, het.offset));
    let whole = Target { job: JobId::job(leader), component: None };
    let alone = Target { component: Some(offset), ..whole };
    if names_leader(part, record) {
        return match action {
            Action::Requeue if record.state.is_pending() => {
                Err(Failure::plain(format_args!("Job is pending execution for job {part}")))
            }
            Action::Requeue if !record.request().is_requeued => Err(not_requeued(part)),
            _ => Ok(whole),
        };
    }
    let is_number = matches!(part, JobPart::Number(_));
    match action {
        Action::Requeue => Err(Failure::plain(format_args!("Job not heterogeneous job leader for job {part}"))),
        Action::Suspend | Action::Resume => {
            let text = "Operation not permitted on individual component of heterogeneous job";
            Err(Failure::plain(format_args!("{text} for job {part}")))
        }
        // Ending component 0 ends the batch script, and with it the job (D-14).
        Action::Cancel if offset == 0 => Ok(whole),
        Action::Cancel | Action::Hold | Action::Release if is_number && whole_hetjob => Ok(whole),
        Action::Cancel if record.state.is_pending() => {
            let text = "Operation not permitted on individual component of heterogeneous job";
            Err(Failure {
                code: NOT_ALONE,
                ..Failure::error("scancel", format_args!("Kill job error on job id {part}: {text}"))
            })
        }
        Action::Cancel | Action::Hold | Action::Release | Action::Update => Ok(alone),
    }
}

/// Plain jobs, arrays and tasks.
fn tasks(part: &JobPart, named: &[&JobRecord]) -> Vec<Target> {
    let target = |job| Target { job, component: None };
    match part {
        // An array task's own number is not that of the array, and the core knows the task by its index.
        JobPart::Number(number) => {
            let of_array = |record: &&JobRecord| record.array.as_ref().is_some_and(|array| array.number != *number);
            let array = named.iter().copied().find(of_array).and_then(|record| record.array.as_ref());
            vec![target(array.and_then(|array| array.task_at(*number)).unwrap_or(JobId::job(*number)))]
        }
        JobPart::AllTasks(number) => vec![target(JobId::job(*number))],
        JobPart::Component { leader, .. } => vec![target(JobId::job(*leader))],
        JobPart::Tasks { array, indices, .. } => {
            // The id can have far more indices than there are tasks.
            let known: BTreeSet<u32> = named
                .iter()
                .filter_map(|record| record.array.as_ref())
                .flat_map(|place| {
                    match &place.tasks {
                        ArrayTasks::One(known) => IndexSet::from_range(*known, *known).intersection(indices),
                        ArrayTasks::Waiting(waiting) => waiting.intersection(indices),
                    }
                    .iter()
                    .collect::<Vec<_>>()
                })
                .collect();
            known.into_iter().map(|index| target(JobId::task(*array, index))).collect()
        }
    }
}
