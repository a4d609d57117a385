//! The start of the chain of submission filters.

use crate::state::State;
use muster_schemas::{
    JobId,
    event::Event,
    filter::{ChainFilter, ChainSpec, FilterKind},
};
use std::sync::Arc;

/// The start of the chain of submission filters, if a job with this template has any. Each filter judges all components
/// of a job (SL-S-21).
pub(crate) fn chain(
    state: &State,
    (job, components): (JobId, usize),
    template: Option<&str>,
    number: u64,
) -> Option<Event> {
    let kind = FilterKind::Submission;
    let of_job = state.filters(kind, template);
    let about = |component| move |filter: &ChainFilter| ChainFilter { component, ..filter.clone() };
    let filters: Vec<ChainFilter> = match u32::try_from(components).unwrap_or(u32::MAX) {
        0 | 1 => of_job,
        several => (0..several).flat_map(|number| of_job.iter().map(about(Some(number)))).collect(),
    };
    if filters.is_empty() {
        return None;
    }
    let limit_seconds = state.filter_settings().timeout_seconds(kind);
    Some(Event::FilterChainStarted {
        job,
        chain: Arc::new(ChainSpec { number, kind, filters, limit_seconds, offer: None }),
    })
}
