//! Tasks of jobs that are lists of them, and how resources are given to jobs.

use super::{Decision, access::Access, invalid};
use muster_schemas::{command::Refusal, event::Event, scheduling::SchedulingSettings};
use std::sync::Arc;

/// Makes this the way resources are given to jobs (HPC-S-01). It starts and stops nothing by itself.
pub(super) fn set_scheduling(access: &Access, settings: SchedulingSettings) -> Result<Decision, Refusal> {
    access.require_administrator("change how resources are given to jobs")?;
    let seconds = [
        ("rebalance_seconds", settings.rebalance_seconds),
        ("release_timeout_seconds", settings.release_timeout_seconds),
    ];
    for (name, value) in seconds {
        if value.is_some_and(|value| !(1..=3600).contains(&value)) {
            return Err(invalid(format!("{name}: expected 1 to 3600")));
        }
    }
    let old = access.state.scheduling().clone();
    if *old == settings {
        return Ok(Decision::done(Vec::new()));
    }
    Ok(Decision::done(vec![Event::SchedulingSet { old, settings: Arc::new(settings) }]))
}
