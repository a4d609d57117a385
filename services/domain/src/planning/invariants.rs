//! Invariants of promises, closures and reservations.

use crate::{invariants::ensure, reservations::taken, state::State};

/// Only waiting jobs have promises, closures are in order, and no node is in two reservations at the same time of which none
/// overlaps others.
pub(crate) fn planning(state: &State) -> Result<(), String> {
    for job in state.jobs().filter(|job| !job.is_waiting() || !job.holds().is_empty()) {
        ensure(job.slot.is_none() && job.predicted_start.is_none(), || format!("job {}: an old promise", job.id))?;
    }
    for (id, planned) in &state.backfill_passes().jobs {
        let job = state.job(*id).filter(|job| job.is_waiting() && job.holds().is_empty());
        let is_whole = job.is_some_and(|job| job.components.len() == planned.len());
        ensure(is_whole, || format!("job {id}: old plans of components"))?;
    }
    for node in state.nodes() {
        let name = &node.spec.name;
        let in_order = node.closures.windows(2).all(|pair| pair[0].until <= pair[1].from);
        ensure(in_order, || format!("node {name}: closures overlap"))?;
        let apart = state.reservations_of(node.id).filter(|one| !one.spec.overlaps);
        let mut reservations: Vec<_> = apart.map(|one| taken(&one.spec)).collect();
        reservations.sort_unstable();
        let apart = reservations.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        ensure(apart, || format!("node {name}: it is in two reservations at a time"))?;
    }
    Ok(())
}
