//! Invariants of components that are ended alone.

use crate::{invariants::ensure, jobs::Job, runs::Run, state::State};

pub(crate) fn check(state: &State) -> Result<(), String> {
    for job in state.jobs() {
        let Some(ends) = job.single_ends.as_deref() else { continue };
        let run = job.run().and_then(|run| state.run(run));
        ensure(!job.is_waiting(), || format!("job {} waits, and has ended components of a run", job.id))?;
        for component in ends.keys().copied() {
            ensure(component > 0, || format!("job {}: its first component was ended alone", job.id))?;
            ensure((component as usize) < job.components.len(), || format!("job {} has no {component}", job.id))?;
            run.map_or(Ok(()), |run| of_run(job, run, component))?;
        }
    }
    Ok(())
}

/// A component that is over has given back all its resources; one that is not still has something running.
fn of_run(job: &Job, run: &Run, component: u32) -> Result<(), String> {
    let name = || format!("job {} component {component}", job.id);
    ensure(run.started.is_some(), || format!("{}: it was ended before the job had started", name()))?;
    let mut parts = run.parts.iter().filter(|part| part.component == component);
    match job.single_end(component).and_then(|end| end.over.as_ref()) {
        Some(_) => ensure(parts.next().is_none(), || format!("{}: it is over, and has nodes", name())),
        None => ensure(parts.any(|part| !part.has_ended()), || format!("{}: nothing of it is left", name())),
    }
}
