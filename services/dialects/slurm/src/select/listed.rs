//! The lines that listings show for ids.

use super::is_named;
use crate::{
    job_id::{IdExpression, JobPart},
    queries::Failure,
    show::{
        record::{ArrayTasks, JobRecord},
        sacct::Row,
        step::StepRecord,
    },
};

/// The lines for an id: the leader of a job with components includes all; of tasks that share a line, only the named
/// ones are shown.
pub fn listed(part: &JobPart, records: &[JobRecord]) -> Vec<JobRecord> {
    records.iter().filter(|record| is_named(part, record)).map(|record| narrowed(part, record)).collect()
}

fn narrowed(part: &JobPart, record: &JobRecord) -> JobRecord {
    let mut record = record.clone();
    let Some(array) = &mut record.array else { return record };
    let ArrayTasks::Waiting(waiting) = &array.tasks else { return record };
    let wanted = match part {
        JobPart::Tasks { indices, .. } => waiting.intersection(indices),
        JobPart::Number(number) if *number > array.number => {
            waiting.intersection(&array.numbered_at(*number).into_iter().collect())
        }
        _ => return record,
    };
    match (wanted.len(), wanted.first()) {
        (1, Some(only)) => record.narrow_to(only),
        _ => array.tasks = ArrayTasks::Waiting(wanted),
    }
    record
}

/// The lines of `squeue -j`, or all without ids (SL-I-06 to I-08).
///
/// # Errors
/// A single id that names nothing (SL-C-26); one among several is left out.
pub fn of_squeue(ids: &[IdExpression], records: Vec<JobRecord>) -> Result<Vec<JobRecord>, Failure> {
    let [only] = ids else {
        return Ok(match ids {
            [] => records,
            several => unique(several.iter().flat_map(|id| listed(&id.job, &records)).collect()),
        });
    };
    match listed(&only.job, &records) {
        found if found.is_empty() => Err(unknown_job()),
        found => Ok(found),
    }
}

/// A line named by two ids is listed once.
fn unique(records: Vec<JobRecord>) -> Vec<JobRecord> {
    let mut seen = std::collections::BTreeSet::new();
    records.into_iter().filter(|record| seen.insert(record.shown_id().to_string())).collect()
}

fn unknown_job() -> Failure {
    Failure::plain("slurm_load_jobs error: Invalid job id specified")
}

/// The lines of `scontrol show job` for an id, components in order (SL-I-10).
///
/// # Errors
/// A component that its job does not have, or a job that does not exist.
pub fn shown_by_scontrol(id: &IdExpression, records: &[JobRecord]) -> Result<Vec<JobRecord>, Failure> {
    let mut found = listed(&id.job, records);
    if found.is_empty() {
        let has_leader = |leader: &u64| !listed(&JobPart::Number(*leader), records).is_empty();
        return Err(match &id.job {
            JobPart::Component { leader, .. } if has_leader(leader) => {
                Failure::plain(format_args!("Job {id} not found"))
            }
            _ => unknown_job(),
        });
    }
    found.sort_by_key(|record| (record.number, record.het.as_ref().map(|het| het.offset)));
    Ok(found)
}

/// The steps for ids: all of a job, or one (`squeue -s`, `scontrol show step`); all without ids.
pub fn of_steps(ids: &[IdExpression], steps: Vec<StepRecord>) -> Vec<StepRecord> {
    let is_of = |id: &IdExpression, step: &StepRecord| {
        let is_job = match (&id.job, JobPart::parse(&step.shown_job)) {
            (JobPart::Number(number), _) if *number == step.job => true,
            (JobPart::Number(number), Some(JobPart::Component { leader, .. })) => *number == leader,
            (JobPart::Number(number) | JobPart::AllTasks(number), Some(JobPart::Tasks { array, .. })) => {
                *number == array
            }
            (JobPart::Tasks { array, indices, .. }, Some(JobPart::Tasks { array: known, indices: index, .. })) => {
                *array == known && indices.contains_all(&index)
            }
            (part, shown) => Some(part) == shown.as_ref(),
        };
        is_job && id.step.is_none_or(|wanted| wanted == step.step)
    };
    steps.into_iter().filter(|step| ids.is_empty() || ids.iter().any(|id| is_of(id, step))).collect()
}

/// The rows of `sacct -j`, or all without ids. `whole_hetjob` says whether all components are listed if one is named;
/// `None` lists all if the leader is named (SL-A-03, SL-A-04). An id of a step lists only that step.
pub fn of_accounting(ids: &[IdExpression], rows: Vec<Row>, whole_hetjob: Option<bool>) -> Vec<Row> {
    if ids.is_empty() {
        return rows;
    }
    rows.into_iter().filter(|row| ids.iter().any(|id| takes(id, row, whole_hetjob))).collect()
}

fn takes(id: &IdExpression, row: &Row, whole_hetjob: Option<bool>) -> bool {
    let is_step = match id.step {
        None => true,
        Some(step) => row.step.as_ref().is_some_and(|known| known.step == step),
    };
    is_step
        && match (&row.job.het, whole_hetjob, &id.job) {
            (Some(het), Some(true), JobPart::Number(number)) => {
                // Numbers of components are consecutive: the set gives the last one.
                let last = het.set.rsplit(['-', ',']).next().and_then(|last| last.parse().ok()).unwrap_or(het.leader);
                (het.leader..=last).contains(number)
            }
            (Some(het), Some(true), JobPart::Component { leader, .. }) => het.leader == *leader,
            (Some(_), Some(false), JobPart::Number(number)) => row.job.number == *number,
            _ => is_named(&id.job, &row.job),
        }
}
