//! Descriptions of jobs from the log: the state keeps only which records hold them.

use crate::log::{Log, LogError};
use muster_schemas::{
    command::JobDocuments,
    event::{Event, Intake, Record, Validated},
    ids::{JobId, Sequence},
    job::JobSpec,
    tasks::TaskList,
};
use std::sync::Arc;

/// The complete job in this record.
///
/// # Errors
/// The record cannot be read, or holds no job.
pub(crate) fn job_spec(log: &Log, sequence: Sequence) -> Result<Arc<JobSpec>, LogError> {
    described(log, sequence).map(|(spec, _)| spec)
}

/// A complete job, and its tasks if it is a list of them.
pub(crate) type Described = (Arc<JobSpec>, Option<Arc<TaskList>>);

/// The complete job in this record, and its tasks.
///
/// # Errors
/// The record cannot be read, or holds no job.
pub(crate) fn described(log: &Log, sequence: Sequence) -> Result<Described, LogError> {
    described_by(log.record(sequence)?, sequence)
}

/// The complete job, and its tasks, in the record of this sequence.
///
/// # Errors
/// There is no such record, or it holds no job.
pub(crate) fn described_by(record: Option<Record>, sequence: Sequence) -> Result<Described, LogError> {
    match record.map(|record| record.event) {
        Some(Event::JobSubmitted { spec, intake: None, .. }) => Ok((spec, None)),
        Some(Event::JobSubmitted { spec, intake: Some(intake), .. } | Event::JobConfigured { spec, intake, .. }) => {
            Ok((spec, Arc::unwrap_or_clone(intake).tasks.map(Arc::new)))
        }
        Some(Event::JobValidated { validated, .. }) => {
            let Validated { spec, tasks, .. } = Arc::unwrap_or_clone(validated);
            Ok((Arc::new(spec), tasks.map(Arc::new)))
        }
        _ => Err(LogError::DamagedRecord { sequence, detail: "it should describe a job".into() }),
    }
}

/// The job or task with a number; `None` if it was never given, or its job is in an archive. The number of a component
/// means its job; tasks of arrays have their own numbers from `tasks_from` on (SL-C-18).
///
/// # Errors
/// A record cannot be read.
pub(crate) fn job_of_number(log: &Log, number: u64, tasks_from: Option<u64>) -> Result<Option<JobId>, LogError> {
    let Some(before) = log.job_number_up_to(number)? else { return Ok(None) };
    let job = JobId::job(before);
    if before == number {
        return Ok(Some(job));
    }
    let Some(spec) = documents(log, job)?.map(|documents| documents.spec) else { return Ok(None) };
    let position = number - before;
    let task = || spec.array.as_ref().filter(|_| tasks_from.is_some_and(|from| from <= before))?.indices.nth(position);
    let component = || (position < spec.components.len() as u64).then_some(job);
    Ok(task().map(|index| JobId::task(before, index)).or_else(component))
}

/// The documents that describe a job; `None` if there is no such job.
///
/// # Errors
/// A record cannot be read.
pub(crate) fn documents(log: &Log, job: JobId) -> Result<Option<JobDocuments>, LogError> {
    let mut found = None;
    for sequence in log.descriptions(job) {
        // Archived records are not searched: the job is long over.
        let Some(record) = log.record(sequence?)? else { break };
        if add(&mut found, record) {
            return Ok(found);
        }
    }
    if found.is_none()
        && let Some(record) = log.submission(job)?
    {
        add(&mut found, record);
    }
    Ok(found)
}

/// Adds the content of an older record; returns whether everything is found.
fn add(found: &mut Option<JobDocuments>, record: Record) -> bool {
    let version = record.sequence;
    match record.event {
        Event::JobValidated { validated, .. } => {
            let Validated { spec, tasks, template, document: effective, .. } = Arc::unwrap_or_clone(validated);
            found.get_or_insert(JobDocuments { version, received: None, effective, spec, tasks, template });
            false
        }
        Event::JobSubmitted { spec, intake: Some(intake), .. } | Event::JobConfigured { spec, intake, .. } => {
            let Intake { document, tasks, template, .. } = Arc::unwrap_or_clone(intake);
            let as_received = || {
                let spec = Arc::unwrap_or_clone(spec);
                JobDocuments { version, received: None, effective: None, spec, tasks, template }
            };
            found.get_or_insert_with(as_received).received = document;
            true
        }
        Event::JobSubmitted { spec, intake: None, .. } => {
            let spec = Arc::unwrap_or_clone(spec);
            let (received, effective, tasks, template) = (None, None, None, None);
            found.get_or_insert(JobDocuments { version, received, effective, spec, tasks, template });
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{event::Concern, testing::assert_handles};

    #[test]
    fn jobs_are_described_by_what_the_table_of_events_says() {
        assert_handles(Concern::Descriptions, |record| {
            let mut found = None;
            add(&mut found, record.clone());
            let is_described = described_by(Some(record.clone()), record.sequence).is_ok();
            assert_eq!(found.is_some(), is_described, "{:?}", record.event);
            is_described
        });
    }
}
