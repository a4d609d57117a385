//! Many jobs in one answer, for commands that list them.

use super::jobs::{self, JobsParams};
use crate::{
    app::{App, Caller},
    budgets::Admitted,
    error::ApiError,
    packing::ReadsGzip,
    params::{At, MomentParams, list},
    reader::Source,
};
use axum::{
    body::Bytes,
    extract::{OriginalUri, State},
    http::header,
    response::IntoResponse,
};
use futures::{StreamExt as _, TryStreamExt as _};
use muster_domain::{OrderHead, State as ClusterState};
use muster_schemas::{
    JobId, Sequence, Timestamp,
    codec::{CodecError, ListEncoder},
    event::Owner,
    job::Program,
    views::{ErrorBody, ErrorCode, JobDetail, JobDetailsPage, StepDetail},
};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

/// The most jobs whose details can be requested at a time.
const MAX_DETAILS: usize = 1_000;
/// For so many jobs the head of the order is not looked for ahead.
const FEW_DETAILS: usize = 4;
/// The number of them that are looked up at a time.
const LOOKED_UP_AT_A_TIME: usize = 32;

/// Which jobs are wanted. All that is given must match.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct WholeListParams {
    /// Owner's login name.
    user: Option<String>,
    /// Job name.
    name: Option<String>,
    /// Finished jobs that are still remembered too.
    #[serde(default)]
    finished: bool,
}

/// List all jobs in one answer
///
/// The answer is a page of jobs in muster's own encoding, for commands of the same version: a tenth of the size of the
/// JSON, and all of one moment.
#[utoipa::path(get, path = "/v1/jobs/all", tag = "jobs", params(MomentParams, WholeListParams),
    responses((status = 200, content_type = "application/octet-stream", body = Vec<u8>),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn all(
    State(app): State<App>,
    Admitted(admission): Admitted,
    OriginalUri(uri): OriginalUri,
    reads_gzip: ReadsGzip,
    At(moment, params): At<WholeListParams>,
) -> Result<impl IntoResponse, ApiError> {
    let wanted = JobsParams::all(params.user, params.name, params.finished);
    let source = app.reader.source(moment).await?;
    let list = app.listings.get(&admission, &uri, reads_gzip, move || whole_list(&wanted, &source)).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], list))
}

/// A [`JobsPage`](muster_schemas::views::JobsPage) whose views are encoded one by one as they are made.
fn whole_list(wanted: &JobsParams, source: &Source) -> Result<Bytes, ApiError> {
    let too_large = |error: CodecError| ApiError::new(ErrorCode::TooLarge, error.to_string());
    let mut jobs = ListEncoder::default();
    let (sequence, time) = wanted.each(source, usize::MAX, |view| jobs.push(&view).map_err(too_large))?;
    let (buffer, start) = jobs.finish(&BehindJobs { next: None, sequence, time }).map_err(too_large)?;
    Ok(Bytes::from(buffer).slice(start..))
}

/// The fields of a [`JobsPage`](muster_schemas::views::JobsPage) after its jobs.
#[derive(Serialize)]
struct BehindJobs {
    next: Option<JobId>,
    sequence: Sequence,
    time: Timestamp,
}

/// Which jobs are wanted with all that is known of them.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DetailsParams {
    /// These jobs, arrays or tasks, separated by commas: at most 1,000.
    #[serde(deserialize_with = "list")]
    #[param(value_type = String)]
    id: Vec<JobId>,
    /// With their steps.
    #[serde(default)]
    steps: bool,
}

/// Show several jobs
///
/// Finished ones that have left the lists are included. Without the texts of scripts, environments and notifications.
#[utoipa::path(get, path = "/v1/jobs/details", tag = "jobs", params(MomentParams, DetailsParams),
    responses((status = 200, body = JobDetailsPage), (status = "default", body = ErrorBody)))]
pub(crate) async fn details(
    State(app): State<App>,
    Caller(caller): Caller,
    At(moment, params): At<DetailsParams>,
) -> Result<axum::Json<JobDetailsPage>, ApiError> {
    let DetailsParams { id: ids, steps: with_steps } = params;
    if ids.len() > MAX_DETAILS {
        return Err(ApiError::invalid(format!("{} jobs are asked for, and at most {MAX_DETAILS} can be", ids.len())));
    }
    app.reader.catch_up(moment.wait_seq).await?;
    let past = app.reader.past_of(moment).await?;
    let meant = |id| jobs::meant(&app, past.as_deref(), id);
    let mut ids: Vec<JobId> = futures::stream::iter(ids).map(meant).buffered(LOOKED_UP_AT_A_TIME).try_collect().await?;
    ids.sort_unstable();
    ids.dedup();
    let sequence = past.as_ref().map_or_else(|| app.reader.projection().sequence(), |state| state.sequence());
    // To find it, all waiting jobs are looked at. Few jobs need it, and they find it themselves if they do.
    let head = match &past {
        _ if ids.len() <= FEW_DETAILS => OrderHead::default(),
        Some(state) => OrderHead::of(state),
        None => app.reader.projection().read(OrderHead::of),
    };
    let one = |id| one(&app, &caller, past.as_deref(), (id, head), with_steps);
    let found: Vec<Option<(JobDetail, Vec<StepDetail>)>> =
        futures::stream::iter(ids).map(one).buffered(LOOKED_UP_AT_A_TIME).try_collect().await?;
    let (jobs, steps): (Vec<JobDetail>, Vec<Vec<StepDetail>>) = found.into_iter().flatten().unzip();
    Ok(axum::Json(JobDetailsPage { jobs, steps: steps.into_iter().flatten().collect(), sequence }))
}

/// A job and its steps; `None` if there is no such job.
async fn one(
    app: &App,
    caller: &Owner,
    past: Option<&ClusterState>,
    (id, head): (JobId, OrderHead),
    with_steps: bool,
) -> Result<Option<(JobDetail, Vec<StepDetail>)>, ApiError> {
    let found = match jobs::find_in(app, past, id, head).await {
        Err(error) if error.0.code == ErrorCode::NotFound => return Ok(None),
        found => found?,
    };
    let history = jobs::history_of(app, &found).await?;
    let mut detail = jobs::detail(app, caller, found, &history).await?;
    let steps =
        if with_steps { super::steps::steps_of(app, detail.job.id, &history, detail.redacted) } else { Vec::new() };
    shorten(&mut detail);
    Ok(Some((detail, steps)))
}

/// Leaves out long fields that no list shows.
fn shorten(detail: &mut JobDetail) {
    detail.redacted = true;
    detail.spec.environment.clear();
    detail.spec.notifications.clear();
    for component in &mut detail.spec.components {
        if let Program::Script { text, .. } = &mut component.launch.program {
            text.clear();
        }
    }
}
