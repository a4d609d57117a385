//! Jobs that have left memory: the log has them.

use super::site::Site;
use muster_client::{JobQuery, Moment};
use muster_schemas::{
    JobId, Timestamp,
    views::{JobDetail, JobDetailsPage, JobView},
};
use muster_slurm::queries::Failure;
use std::collections::HashSet;

/// The jobs that had not ended by `from`, were submitted by `to`, and are not among the `known` ones, which are those in
/// memory: those that were unfinished at `from`, and those whose numbers were given since.
///
/// # Errors
/// The system did not answer.
pub fn forgotten(
    site: &mut Site,
    (from, to): (Timestamp, Option<Timestamp>),
    known: &[JobView],
) -> Result<Vec<JobId>, Failure> {
    let until = to.filter(|to| *to < site.clock.now).map_or(Moment::Now, Moment::Time);
    let end = next_number(site, until)?;
    let numbers: HashSet<u64> = known.iter().flat_map(numbers_of).collect();
    if (1..end).all(|number| numbers.contains(&number)) {
        return Ok(Vec::new());
    }
    let begin = next_number(site, Moment::Time(from))?;
    let query = JobQuery { moment: Moment::Time(from), ..JobQuery::default() };
    let unfinished = site.client.jobs(&query).map_err(|error| site.failure(&error))?.jobs;
    let in_memory: HashSet<JobId> = known.iter().map(|view| view.id).collect();
    let earlier = unfinished.iter().flat_map(with_tasks).filter(|id| !in_memory.contains(id));
    let later = (begin..end).filter(|number| !numbers.contains(number)).map(JobId::job);
    Ok(earlier.chain(later).collect())
}

/// The details of jobs, with those of the first task of each array, whose number is the array's.
///
/// # Errors
/// The system did not answer.
pub fn details_with_first_tasks(site: &mut Site, jobs: &[JobId], with_steps: bool) -> Result<JobDetailsPage, Failure> {
    let mut page = site.details(jobs, with_steps)?;
    let first_task = |detail: &JobDetail| {
        let array = detail.job.array.as_ref()?;
        let first = array.numbered.iter().next().filter(|index| !array.remaining.contains(*index))?;
        Some(JobId::task(detail.job.id.number, first))
    };
    let known: HashSet<JobId> = page.jobs.iter().map(|detail| detail.job.id).collect();
    let missing: Vec<JobId> = page.jobs.iter().filter_map(first_task).filter(|id| !known.contains(id)).collect();
    let more = site.details(&missing, with_steps)?;
    page.jobs.extend(more.jobs);
    page.steps.extend(more.steps);
    // A number can be that of a job that is named as well.
    page.jobs.sort_by_key(|detail| detail.job.id);
    page.jobs.dedup_by_key(|detail| detail.job.id);
    Ok(page)
}

fn next_number(site: &mut Site, moment: Moment) -> Result<u64, Failure> {
    Ok(site.client.info(moment).map_err(|error| site.failure(&error))?.next_job_number)
}

/// The numbers of a job: its own, those of its components, and those of an array's tasks that have not started.
fn numbers_of(view: &JobView) -> Vec<u64> {
    let own = view.own_number();
    let mut numbers: Vec<u64> = (own..own + u64::from(view.components.max(1))).collect();
    if let Some(array) = &view.array {
        let tasks = (own..).zip(array.numbered.iter());
        numbers.extend(tasks.filter(|(_, index)| array.remaining.contains(*index)).map(|(number, _)| number));
    }
    numbers
}

/// A job, and the tasks of an array that had not started.
fn with_tasks(view: &JobView) -> Vec<JobId> {
    let tasks = view.array.iter().flat_map(|array| array.remaining.iter());
    std::iter::once(view.id).chain(tasks.map(|index| JobId::task(view.id.number, index))).collect()
}
