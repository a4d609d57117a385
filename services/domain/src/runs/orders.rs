//! Orders about parts of runs.

use crate::{orders::OrderSeed, runs::Run, state::State};
use muster_schemas::PartId;

pub(crate) fn launch(state: &State, run: &Run, part: PartId) -> Option<OrderSeed> {
    let job = state.job(run.job)?;
    let submitted_sequence = job.submitted_sequence;
    Some(match job.tasks {
        Some(_) => OrderSeed::Hold { part, submitted_sequence },
        None => OrderSeed::Launch { part, submitted_sequence },
    })
}

pub(crate) fn kill_grace(state: &State, run: &Run) -> u32 {
    let own = state.job(run.job).and_then(|job| job.lead().extras.as_ref()?.kill_grace_seconds);
    own.unwrap_or(state.settings().kill_grace_seconds)
}
