//! Which jobs a job may depend on, or be put before.

use crate::{
    decide::{Access, conflict, invalid, not_found},
    dependencies::Condition,
    jobs::{Component, Job},
    state::State,
};
use muster_schemas::{
    JobId,
    command::Refusal,
    event::{Event, JobChange},
    job::{Dependencies, Dependency, DependencyKind, JobSpec, JobType},
};
use std::sync::Arc;

/// Whether every job that is depended on exists, and those that would be put behind this one may be. The number of a
/// component stands for its job, that of an array's task for the task (SL-C-19). If the job or its target is not an
/// array, there are no tasks of the same index: then the whole target has to succeed.
pub(crate) fn complete_dependencies(
    access: &Access,
    dependencies: &mut Dependencies,
    own: Option<JobId>,
    is_array: bool,
) -> Result<(), Refusal> {
    for dependency in dependencies.all_of.iter_mut().flatten() {
        dependency.job = dependency.job.map(|named| match named.index {
            None => access.state.job_of_number(named.number).unwrap_or(named),
            Some(_) => named,
        });
        require_dependency(access, dependency, own)?;
        let on_array =
            dependency.job.and_then(|target| access.state.job(target)).is_some_and(|job| job.array.is_some());
        if dependency.kind == DependencyKind::SameIndexSucceeded && !(is_array && on_array) {
            dependency.kind = DependencyKind::Succeeded;
        }
    }
    Ok(())
}

fn require_dependency(access: &Access, dependency: &Dependency, own: Option<JobId>) -> Result<(), Refusal> {
    let Some(target) = dependency.job else { return Ok(()) };
    if own == Some(target) {
        return Err(invalid(format!("dependencies: job {target} cannot depend on itself")));
    }
    let job = named_job(access.state, target)?;
    let puts_behind = matches!(
        dependency.kind,
        DependencyKind::BeforeStarted
            | DependencyKind::BeforeEnded
            | DependencyKind::BeforeSucceeded
            | DependencyKind::BeforeFailed
    );
    if !puts_behind {
        return Ok(());
    }
    access.require_management(job)?;
    if job.id != target || !job.is_waiting() {
        return Err(conflict(format!("dependencies: job {target} no longer waits, nothing can be put before it")));
    }
    Ok(())
}

/// The changes of the jobs that wait for the one whose place a new job takes: they wait for the new one (OAR-D-05).
///
/// # Errors
/// If the other one has not ended, or belongs to somebody else.
pub(crate) fn followers_of_replaced(access: &Access, spec: &JobSpec, by: JobId) -> Result<Vec<Event>, Refusal> {
    let replaced = spec.types.iter().filter_map(|kind| match kind {
        JobType::TakesPlaceOf(job) => Some(*job),
        _ => None,
    });
    let mut events = Vec::new();
    // Nobody depends on a job that has been forgotten.
    for old in replaced.filter_map(|old| access.state.job(old)) {
        access.require_management(old)?;
        let is_ending = old.run().and_then(|run| access.state.run(run)).is_some_and(|run| run.stopping.is_some());
        if !old.is_finished() && !is_ending {
            return Err(conflict(format!("types: job {} has not ended, nothing takes its place", old.id)));
        }
        let waiting = access.state.dependents(old.id).filter_map(|id| access.state.job(id));
        for job in waiting.filter(|job| job.is_waiting()) {
            events.extend(moved(job, old.id, by));
        }
    }
    Ok(events)
}

/// The changes by which a job depends on another one instead of the one before, for each component that does.
fn moved(job: &Job, before: JobId, after: JobId) -> Vec<Event> {
    let is_single = job.components.len() == 1;
    let moved = |(number, component): (u32, &Component)| {
        let own = &component.extras.as_ref()?.dependencies;
        if own.iter().flatten().all(|condition| condition.dependency.job != Some(before)) {
            return None;
        }
        let renamed = |condition: &Condition| {
            let job = condition.dependency.job.map(|job| if job == before { after } else { job });
            Dependency { job, ..condition.dependency.clone() }
        };
        let all_of = own.iter().map(|group| group.iter().map(renamed).collect()).collect();
        let change = JobChange {
            dependencies: Some(Dependencies { all_of }),
            component: (!is_single).then_some(number),
            ..JobChange::default()
        };
        Some(Event::JobModified { job: job.id, change: Arc::new(change) })
    };
    (0..).zip(&job.components).filter_map(moved).collect()
}

/// The job with this id, or the array of a task.
pub(crate) fn named_job(state: &State, id: JobId) -> Result<&Job, Refusal> {
    if let Some(job) = state.job(id) {
        return Ok(job);
    }
    let whole = state.job(id.whole()).filter(|whole| match (id.index, &whole.array) {
        (Some(index), Some(array)) => array.remaining.contains(index) || array.task_outcome(index).is_some(),
        _ => false,
    });
    whole.ok_or_else(|| not_found(format!("job {id} does not exist, or ended too long ago")))
}
