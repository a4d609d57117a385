//! The stream of events.

use crate::{
    app::App,
    budgets::Admitted,
    error::ApiError,
    live::{self, Filter},
    params::{Params, list},
};
use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, header},
    response::IntoResponse,
};
use muster_schemas::{JobId, Sequence, public::catalogue, views::ErrorBody};
use serde::Deserialize;
use utoipa::IntoParams;

const LAST_EVENT_ID: &str = "last-event-id";

/// Which events are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsParams {
    /// The first sequence wanted; left out, new events only.
    from: Option<Sequence>,
    /// Only events of this job; for an array also those of its tasks, for a task also those of its array. Reasons for
    /// waiting are events of the plan, not of a job.
    job: Option<JobId>,
    /// Only these kinds (`job`) or kinds and verbs (`job.started`), separated by commas.
    #[serde(default, deserialize_with = "list")]
    #[param(value_type = Option<String>)]
    kind: Vec<String>,
}

/// Follow events as server-sent events
///
/// Each has the sequence as `id`, the type as `event` and the CloudEvent as `data`. The stream never ends, and can be
/// continued after any event by `Last-Event-ID`. Comments say where it begins (`: from 12`), when everything has been
/// sent that had happened before the request (`: caught up`), and that it is alive. An event of type `error` ends it.
#[utoipa::path(get, path = "/v1/events", tag = "events",
    params(EventsParams, ("Last-Event-ID" = Option<u64>, Header, description = "Continue after this event.")),
    responses((status = 200, content_type = "text/event-stream", body = String), (status = "default", body = ErrorBody)))]
pub(crate) async fn stream(
    State(app): State<App>,
    Admitted(admission): Admitted,
    headers: HeaderMap,
    Params(params): Params<EventsParams>,
) -> Result<impl IntoResponse, ApiError> {
    let following = admission.follow()?;
    app.reader.catch_up(None).await?;
    let known = app.reader.projection().read(|state| state.sequence());
    let from = match headers.get(LAST_EVENT_ID) {
        Some(id) => last_event(id.as_bytes())?.next(),
        None => params.from.unwrap_or_else(|| known.next()),
    };
    params.kind.iter().try_for_each(|kind| check_kind(kind))?;
    let filter = Filter { job: params.job, kinds: params.kind };
    let from = from.max(Sequence(1));
    let (live, reader) = (app.live.clone(), app.reader.clone());
    let events = live::subscribe(live, reader, filter, from, known, (admission, following), app.shutdown.clone());
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    Ok((headers, Body::from_stream(events)))
}

/// A kind that does not exist would be waited for in vain.
fn check_kind(wanted: &str) -> Result<(), ApiError> {
    let (kind, verb) = wanted.split_once('.').map_or((wanted, None), |(kind, verb)| (kind, Some(verb)));
    let known = catalogue().iter().any(|event| event.kind == kind && verb.is_none_or(|verb| event.verb == verb));
    if known {
        return Ok(());
    }
    Err(ApiError::malformed(format!("there is no kind of event `{wanted}`; kinds are such as `job` or `job.started`")))
}

fn last_event(id: &[u8]) -> Result<Sequence, ApiError> {
    let number = std::str::from_utf8(id).ok().and_then(|text| text.trim().parse().ok());
    let number = number.filter(|number| *number < u64::MAX);
    number.map(Sequence).ok_or_else(|| ApiError::malformed("`Last-Event-ID` is not the sequence of an event"))
}
