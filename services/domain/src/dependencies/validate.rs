//! Limits on dependencies.

use crate::validate::{MAX_DEPENDENCIES, MAX_SECONDS, count, invalid, number};
use muster_schemas::{
    command::Refusal,
    job::{Dependencies, Dependency, DependencyKind},
};

/// The dependencies of a component.
pub(crate) fn dependencies(dependencies: &Dependencies) -> Result<(), Refusal> {
    let total = dependencies.all_of.iter().map(Vec::len).sum();
    count("dependencies", total, MAX_DEPENDENCIES)?;
    count("dependencies", dependencies.all_of.len(), MAX_DEPENDENCIES)?;
    if dependencies.all_of.iter().any(Vec::is_empty) {
        return invalid("dependencies: a group has no condition, so it could never be met".into());
    }
    dependencies.all_of.iter().flatten().try_for_each(dependency)
}

fn dependency(dependency: &Dependency) -> Result<(), Refusal> {
    let needs_job = !matches!(dependency.kind, DependencyKind::Singleton | DependencyKind::Count(_));
    match dependency.job {
        None if needs_job => invalid("dependencies: a condition names no job".into()),
        Some(job) if !needs_job => invalid(format!("dependencies: singleton and count take no job, {job} is given")),
        _ => number("dependencies.delay_seconds", u64::from(dependency.delay_seconds), 0, MAX_SECONDS),
    }
}
