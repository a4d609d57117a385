//! Limits on jobs with a fixed start.

use crate::validate::{invalid, shown};
use muster_schemas::{
    command::Refusal,
    job::{JobSpec, JobType},
};

/// A job with a fixed start has one component with one request, a begin time and a walltime, and is no array.
pub(crate) fn of_job(spec: &JobSpec) -> Result<(), Refusal> {
    if !spec.types.contains(&JobType::FixedStart) {
        return Ok(());
    }
    let name = shown(&spec.name);
    let refused = |why: &str| invalid(format!("types: job `{name}` has a fixed start, and {why}"));
    let [component] = &spec.components[..] else { return refused("not one component") };
    let [way] = &component.alternatives[..] else { return refused("not one request") };
    match () {
        () if spec.array.is_some() => refused("it is an array"),
        () if component.begin.is_none() => refused("no begin time"),
        () if way.walltime_seconds.is_none() => refused("no walltime"),
        () if component.deadline.is_some() => refused("a deadline: it ends when its walltime is over"),
        () => Ok(()),
    }
}
