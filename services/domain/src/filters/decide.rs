//! Commands about filters, templates and timed holds, and the effect of time on them.

pub(crate) mod calls;
pub(crate) mod consequences;
pub(crate) mod entry;
pub(crate) mod holds;
pub(crate) mod settings;
pub(crate) mod submission;
mod verdicts;

use crate::state::State;
use muster_schemas::{JobId, Timestamp, event::Event};

/// The effect of time on a job's hold, and on a call claimed by a runner.
pub(crate) fn due(state: &State, id: JobId, now: Timestamp) -> Vec<Event> {
    let Some(filters) = state.job(id).and_then(|job| job.filters.as_deref()) else { return Vec::new() };
    let is_over = filters.hold.is_some_and(|(until, _)| until <= now);
    let mut events = if is_over { vec![Event::JobHoldEnded { job: id, is_over }] } else { Vec::new() };
    events.extend(calls::silent(state, id, now));
    events
}
