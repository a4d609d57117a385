//! Which jobs a job may depend on, or be put before.

use crate::{
    decide::{Access, conflict, invalid, not_found},
    jobs::Job,
    state::State,
};
use muster_schemas::{
    JobId,
    command::Refusal,
    job::{Dependencies, Dependency, DependencyKind},
};

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
