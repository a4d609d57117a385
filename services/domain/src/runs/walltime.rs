//! How long runs and their parts may last.

use crate::{
    jobs::Job,
    runs::{Part, Run},
};
use muster_schemas::resources::Placement;

/// How long a part may run from its own start: less for one that joined a run later (HPC-J-11).
pub(crate) fn walltime_of_part(job: &Job, run: &Run, part: &Part) -> Option<u64> {
    let of_run = walltime(job, &run.placement, part.component)?;
    let joined = job.tasks.as_ref().and_then(|tasks| tasks.joined.get(&part.node));
    let late_micros = joined.zip(run.started).map_or(0, |(joined, started)| joined.micros_since(started));
    Some(of_run.saturating_sub(u64::try_from(late_micros).unwrap_or(0) / 1_000_000))
}

/// The walltime of the chosen alternative.
pub(crate) fn walltime(job: &Job, placement: &Placement, component: u32) -> Option<u64> {
    let placed = placement.components.get(component as usize)?;
    let alternatives = &job.components.get(component as usize)?.shape.alternatives;
    alternatives.get(placed.alternative as usize)?.walltime_seconds
}
