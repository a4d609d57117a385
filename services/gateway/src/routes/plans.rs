//! Plans, the reasons why jobs wait, and the accuracy of plans. The planner's own library answers, from the requested
//! state.

use super::jobs;
use crate::{
    app::{Answered, App, Asked, Caller},
    body::Json,
    error::ApiError,
    params::{At, MomentParams, NoParams, Params, Path, job_id},
    planning::work,
    views,
};
use axum::extract::State;
use muster_domain::State as ClusterState;
use muster_planner::{
    explain::{explain, explain_start, told_from},
    forecast::foresee,
    projection::Projection,
    timetable::{Accuracy, Part, timetable},
};
use muster_schemas::{
    JobId, Sequence, Timestamp,
    command::Command,
    event::{Event, Record},
    job::JobState,
    views::{
        CommandAnswer, ErrorBody, ErrorCode, Explanation, Forecast, ForecastRequest, PlanAccuracy, RunJobRequest,
        RunView, StartExplanation, Timetable, WaitExplanation,
    },
};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// Bytes of records that are read at a time.
const PAGE_BYTES: u32 = 4 << 20;
/// The default period of prediction accuracy is a day.
const DEFAULT_PERIOD_SECONDS: i64 = 86_400;

/// Explain why a job waits, or how its start came about
///
/// For a waiting job the planner plans on a copy of the state, and tries each change that it suggests.
#[utoipa::path(get, path = "/v1/jobs/{id}/explanation", tag = "jobs",
    params(("id" = String, Path, description = "The job."), MomentParams),
    responses((status = 200, body = Explanation), (status = "default", body = ErrorBody)))]
pub(crate) async fn explanation(
    State(app): State<App>,
    Path(id): Path<String>,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<Explanation>, ApiError> {
    let id = job_id(&id)?;
    let jobs::Found { view, up_to, .. } = jobs::find(&app, moment, id).await?;
    let (sequence, now, waiting) = match view.state {
        JobState::Held | JobState::Queued => {
            let (projection, now) = projection_of(&app, moment).await?;
            (projection.state().sequence(), now, why_waiting(&app, projection, id, now).await?)
        }
        _ => {
            let look = |state: &ClusterState| Ok((state.sequence(), time_to_plan_for(moment, state)));
            let (sequence, now) = app.reader.read(moment, look).await?;
            (sequence, now, None)
        }
    };
    let start = match waiting {
        None => how_started(&app, id, up_to).await?,
        Some(_) => None,
    };
    Ok(axum::Json(Explanation { job: id, state: view.state, sequence, time: now, waiting, start }))
}

/// The planner's knowledge at a moment, and the time to plan for.
async fn projection_of(app: &App, moment: MomentParams) -> Result<(Arc<Projection>, Timestamp), ApiError> {
    app.reader.catch_up(moment.wait_seq).await?;
    let projection = match app.reader.past_of(moment).await? {
        Some(state) => work(move || Arc::new(Projection::of(Arc::unwrap_or_clone(state)))).await?,
        None => app.planning.now(&app.reader).await?,
    };
    let now = time_to_plan_for(moment, projection.state());
    Ok((projection, now))
}

/// Start a waiting job at once
///
/// No limit on running jobs and no stopped queue keeps it from that; it is refused if it does not fit what is free.
#[utoipa::path(operation_id = "run_job", post, path = "/v1/jobs/{id}/run", tag = "jobs", request_body = RunJobRequest,
    params(("id" = String, Path, description = "The job, or a task of an array."),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn run(
    State(app): State<App>,
    Path(id): Path<String>,
    asked: Asked,
    Json(request): Json<RunJobRequest>,
) -> Answered {
    let job = job_id(&id)?;
    if !app.is_operator(asked.caller()) {
        return Err(ApiError::new(ErrorCode::PermissionDenied, "only operators start jobs themselves"));
    }
    let (projection, now) = projection_of(&app, MomentParams::default()).await?;
    if projection.state().job(job).is_none() && projection.state().job(job.whole()).is_none() {
        return Err(ApiError::new(ErrorCode::NotFound, format!("job {job} does not exist")));
    }
    let place = move || projection.place_alone(job, &request.nodes, now);
    let placement = planned(&app, place).await?;
    let refused = |why| ApiError::new(ErrorCode::Conflict, format!("job {job} cannot be started: {why}"));
    app.jobs_command(asked, Command::RunJob { job, placement: placement.map_err(refused)? }).await
}

/// The given time, or that of the given record, or else the clock's.
fn time_to_plan_for(moment: MomentParams, state: &ClusterState) -> Timestamp {
    let time = match moment {
        MomentParams { at: Some(time), .. } => time,
        MomentParams { at_seq: Some(_), .. } => state.time(),
        _ => Timestamp::now(),
    };
    time.max(state.time())
}

/// Plans for a query when it is its turn. The turn lasts until the plan is made, even if nobody waits any more.
async fn planned<T: Send + 'static>(app: &App, plan: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    let stopping = |_| ApiError::unavailable("the gateway is stopping");
    let turn = app.plannings.clone().acquire_owned().await.map_err(stopping)?;
    work(move || {
        let _turn = turn;
        plan()
    })
    .await
}

async fn why_waiting(
    app: &App,
    projection: Arc<Projection>,
    id: JobId,
    now: Timestamp,
) -> Result<Option<WaitExplanation>, ApiError> {
    planned(app, move || {
        let state = projection.state();
        // A task that has never started waits as its array does.
        let job = state.job(id).or_else(|| state.job(id.whole()))?;
        explain(projection.engine(), state, job, now)
    })
    .await
}

/// How the latest run of a job came about, if it had one.
async fn how_started(app: &App, id: JobId, up_to: Option<Sequence>) -> Result<Option<StartExplanation>, ApiError> {
    let history = app.reader.job_history(id, up_to).await?;
    let views = app.reader.projection().read(|state| views::runs(&history, state));
    let is_own = |run: &RunView| run.job == id;
    let Some(run) = views.into_iter().rev().find(is_own) else { return Ok(None) };
    let is_allocation =
        |record: &&Record| matches!(&record.event, Event::RunAllocated { run: of, .. } if *of == run.run);
    let submitted = history.first().map_or(Sequence(1), |record| record.sequence);
    let Some(allocation) = history.iter().find(is_allocation) else { return Ok(None) };
    let from = told_from(submitted, allocation.sequence);
    let before = app.reader.past(Sequence(from.0.saturating_sub(1))).await?;
    let records = up_to_plan(app, from, allocation).await?;
    let explained = work(move || explain_start(ClusterState::clone(&before), &records, &run));
    explained.await.map(Some)
}

/// The records from one on to the end of the command that made an allocation.
async fn up_to_plan(app: &App, from: Sequence, allocation: &Record) -> Result<Vec<Record>, ApiError> {
    let mut records: Vec<Record> = Vec::new();
    let is_beyond = |record: &Record| record.sequence > allocation.sequence && record.command != allocation.command;
    loop {
        let next = records.last().map_or(from, |record| record.sequence.next());
        let page = app.reader.replay(next, PAGE_BYTES).await?;
        let is_end = page.is_empty() || page.iter().any(is_beyond);
        records.extend(page.into_iter().take_while(|record| !is_beyond(record)));
        if is_end {
            return Ok(records);
        }
    }
}

/// Predict when a job would start
///
/// It is checked and planned as if it were submitted now, but nothing is submitted; filters are not asked.
#[utoipa::path(post, path = "/v1/jobs/forecast", tag = "plan", request_body = ForecastRequest,
    responses((status = 200, body = Forecast), (status = "default", body = ErrorBody)))]
pub(crate) async fn forecast(
    State(app): State<App>,
    Caller(caller): Caller,
    Json(request): Json<ForecastRequest>,
) -> Result<axum::Json<Forecast>, ApiError> {
    let (projection, now) = projection_of(&app, MomentParams::default()).await?;
    let foreseen = planned(&app, move || foresee(&projection, &caller, request.job, now)).await?;
    foreseen.map(axum::Json).map_err(ApiError::from)
}

/// Which part of the timetable is wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PlanParams {
    /// Only jobs of this queue.
    queue: Option<String>,
    /// Maximum number of waiting jobs, first in order; all if left out.
    limit: Option<u32>,
}

/// Show runs, promises and predictions
#[utoipa::path(get, path = "/v1/plan", tag = "plan", params(MomentParams, PlanParams),
    responses((status = 200, body = Timetable), (status = "default", body = ErrorBody)))]
pub(crate) async fn plan(
    State(app): State<App>,
    At(moment, params): At<PlanParams>,
) -> Result<axum::Json<Timetable>, ApiError> {
    let (projection, now) = projection_of(&app, moment).await?;
    if let Some(queue) = params.queue.as_deref().filter(|queue| projection.state().queue(queue).is_none()) {
        return Err(ApiError::not_found(format!("there is no queue `{queue}`")));
    }
    let part = Part { queue: params.queue, limit: params.limit.map(|limit| limit as usize) };
    planned(&app, move || timetable(projection.engine(), projection.state(), now, &part)).await.map(axum::Json)
}

/// Which period is asked about.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AccuracyParams {
    /// Jobs that have started since then; since a day ago if left out.
    since: Option<Timestamp>,
}

/// Show how accurate the predictions of starts were
#[utoipa::path(get, path = "/v1/plan/accuracy", tag = "plan", params(AccuracyParams),
    responses((status = 200, body = PlanAccuracy), (status = "default", body = ErrorBody)))]
pub(crate) async fn accuracy(
    State(app): State<App>,
    Params(params): Params<AccuracyParams>,
) -> Result<axum::Json<PlanAccuracy>, ApiError> {
    app.reader.catch_up(None).await?;
    let since = params.since.unwrap_or_else(|| Timestamp::now().plus_seconds(-DEFAULT_PERIOD_SECONDS));
    let moment = MomentParams { at: Some(since), ..MomentParams::default() };
    let head = app.reader.projection().sequence();
    let first = app.reader.sequence_of(moment).await?.unwrap_or(head).max(Sequence(1));
    let state = app.reader.past(first).await?;
    let mut accuracy = Accuracy::from(Arc::unwrap_or_clone(state), since);
    while accuracy.sequence() < head {
        let page = app.reader.replay(accuracy.sequence().next(), PAGE_BYTES).await?;
        if page.is_empty() {
            break;
        }
        accuracy = work(move || {
            page.iter().for_each(|record| accuracy.read(record));
            accuracy
        })
        .await?;
    }
    work(move || accuracy.finish()).await.map(axum::Json)
}
