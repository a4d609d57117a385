//! Steps of running jobs, and jobs that hold resources for a client.

use super::{jobs, known_steps};
use crate::{
    app::{Answered, App, Asked, Caller},
    body::{Json, Raw},
    error::ApiError,
    params::{At, MomentParams, NoParams, Params, Path, job_id},
    steps::{
        self, KnownStep,
        streams::{ReadFrom, Said, Streams},
    },
};
use axum::{extract::State, http::header, response::IntoResponse};
use muster_schemas::{
    JobId, RunId, StepId, codec,
    command::{Command, RefusalCode, Reply},
    event::{Owner, Record},
    resources::IndexSet,
    step_io::{AT_END, MAX_READ_BYTES},
    steps::StepSpec,
    views::{
        CommandAnswer, ConcludeRequest, ErrorBody, ErrorCode, KeepRequest, StepAnswer, StepDetail, StepEndRequest,
        StepInputAnswer, StepSignalRequest, StepTerminalRequest, StepWalltimeRequest, StepsPage,
    },
};
use serde::Deserialize;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use utoipa::IntoParams;

/// The longest wait of a request.
const MAX_WAIT_SECONDS: u32 = 300;
/// The longest wait for output, so that a lost connection is noticed.
const MAX_READ_SECONDS: u32 = 20;

fn step_id(text: &str) -> Result<StepId, ApiError> {
    text.parse().map(StepId).map_err(|_| ApiError::malformed(format!("`{text}` is not a step number")))
}

/// How long to wait for cores.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LaunchParams {
    /// Maximum time to wait until the job has started on all its nodes, and for cores that other steps use: 0 to 300
    /// seconds; 0 if left out.
    #[serde(default)]
    wait_seconds: u32,
}

/// Launch a step inside a running job
///
/// Refused with the code `busy` if it fits as soon as the job has started on all its nodes, or other steps have ended.
/// A group without places fills nodes of the job.
#[utoipa::path(post, path = "/v1/jobs/{id}/steps/launch", tag = "steps", request_body = StepSpec,
    params(("id" = String, Path, description = "The job."), LaunchParams,
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = StepAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn launch(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(params): Params<LaunchParams>,
    asked: Asked,
    Json(spec): Json<StepSpec>,
) -> Result<axum::Json<StepAnswer>, ApiError> {
    let job = job_id(&id)?;
    let deadline = Instant::now() + wait(params.wait_seconds, MAX_WAIT_SECONDS)?;
    let command = Command::LaunchStep { job, spec: Box::new(spec) };
    when_it_fits(&app, &asked, job, &command, deadline).await.map(axum::Json)
}

/// Launches a step, trying again whenever it was refused as `busy` and the job's uses have changed.
async fn when_it_fits(
    app: &App,
    asked: &Asked,
    job: JobId,
    command: &Command,
    deadline: Instant,
) -> Result<StepAnswer, ApiError> {
    let mut changes = app.reader.projection().changes();
    for attempt in 0u32.. {
        // Read before asking: any later change can change the answer.
        let (before, seen) = (uses(app, job), app.reader.projection().sequence());
        // A refusal is the answer to its command for ever; so each attempt is a separate command, and a client that
        // repeats all of this reaches the same one in the end.
        let answer = app.answer(asked.attempt(attempt), command.clone()).await?;
        match answer.result {
            Ok(Reply::Step { run, step }) => return Ok(StepAnswer { sequence: answer.sequence, run, step }),
            Ok(reply) => {
                tracing::error!(?reply, "the ledger's reply does not fit the command");
                break;
            }
            Err(refusal) if refusal.code == RefusalCode::Busy => {
                // An earlier request of this client got this one, and what it was refused for can have changed since.
                let is_repeated = answer.sequence < seen && Instant::now() < deadline;
                if !is_repeated && !uses_changed(app, &mut changes, job, before, deadline).await {
                    return Err(refusal.into());
                }
            }
            Err(refusal) => return Err(refusal.into()),
        }
    }
    Err(ApiError::unavailable("the ledger's reply does not fit the command"))
}

/// Facts that decide whether a step of a job fits; `None` if the job has no run.
type Uses = Option<RunUses>;

/// Facts that decide whether a step of a run fits.
#[derive(Clone, Copy, PartialEq, Eq)]
struct RunUses {
    has_started: bool,
    is_stopping: bool,
    has_lent: bool,
    /// How many parts of steps use its cores.
    open_parts: usize,
}

fn uses(app: &App, job: JobId) -> Uses {
    app.reader.projection().read(|state| {
        let run = state.job(job).and_then(|job| job.run()).and_then(|run| state.run(run))?;
        let parts = run.steps.values().flat_map(|step| &step.parts);
        Some(RunUses {
            has_started: run.started.is_some(),
            is_stopping: run.stopping.is_some(),
            has_lent: run.has_lent(),
            open_parts: parts.filter(|part| part.exit.is_none()).count(),
        })
    })
}

/// Waits for a change; false at the timeout.
async fn uses_changed(
    app: &App,
    changes: &mut tokio::sync::watch::Receiver<muster_schemas::Sequence>,
    job: JobId,
    before: Uses,
    deadline: Instant,
) -> bool {
    loop {
        changes.borrow_and_update();
        if uses(app, job) != before {
            return true;
        }
        if !jobs::changed(app, changes, deadline).await {
            return false;
        }
    }
}

fn wait(seconds: u32, most: u32) -> Result<Duration, ApiError> {
    if seconds > most {
        return Err(ApiError::invalid(format!("`wait_seconds` is {seconds}, and must be 0 to {most}")));
    }
    Ok(Duration::from_secs(seconds.into()))
}

/// Which step to wait for, and how long.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StepWaitParams {
    /// The run that the step belongs to.
    run: RunId,
    /// Maximum time to wait for the answer, 0 to 300 seconds; 60 if left out.
    timeout_seconds: Option<u32>,
}

/// Wait until a step is over
#[utoipa::path(get, path = "/v1/jobs/{id}/steps/{step}/wait", tag = "jobs",
    params(("id" = String, Path, description = "The job."), ("step" = u32, Path, description = "The step."),
        StepWaitParams),
    responses((status = 200, body = StepDetail), (status = "default", body = ErrorBody)))]
pub(crate) async fn wait_for_step(
    State(app): State<App>,
    Path((id, step)): Path<(String, String)>,
    Params(params): Params<StepWaitParams>,
) -> Result<axum::Json<StepDetail>, ApiError> {
    let id = job_id(&id)?;
    let step = step_id(&step)?;
    let deadline = jobs::deadline(params.timeout_seconds)?;
    let unknown = || ApiError::not_found(format!("there is no step {step} in run {} of job {id}", params.run));
    app.reader.catch_up(None).await?;
    let mut changes = app.reader.projection().changes();
    loop {
        changes.borrow_and_update();
        let lasts = app
            .reader
            .projection()
            .read(|state| state.run(params.run).is_some_and(|run| run.job == id && run.steps.contains_key(&step)));
        if lasts {
            if jobs::changed(&app, &mut changes, deadline).await {
                continue;
            }
            let found = app.reader.projection().read(|state| steps::running_step(state, params.run, step));
            if let Some(found) = found {
                return Ok(axum::Json(found));
            }
            // It has ended at this very moment.
        }
        let history = app.reader.job_history(id, None).await?;
        // The data that its client keeps with it is of no interest here.
        let steps = steps_of(&app, id, &history, true);
        let found = steps.into_iter().find(|known| (known.run, known.step) == (params.run, step));
        return found.map(axum::Json).ok_or_else(unknown);
    }
}

/// List the steps of a job, including those that have ended
#[utoipa::path(get, path = "/v1/jobs/{id}/steps", tag = "steps",
    params(("id" = String, Path, description = "The job."), MomentParams),
    responses((status = 200, body = StepsPage), (status = "default", body = ErrorBody)))]
pub(crate) async fn of_job(
    State(app): State<App>,
    Path(id): Path<String>,
    Caller(caller): Caller,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<StepsPage>, ApiError> {
    let id = job_id(&id)?;
    let found = jobs::find(&app, moment, id).await?;
    let id = found.view.id;
    let history = app.reader.job_history(id, found.up_to).await?;
    let steps = steps_of(&app, id, &history, !jobs::may_see_all(&app, &caller, &found.view));
    let sequence = found.up_to.unwrap_or_else(|| app.reader.projection().sequence());
    Ok(axum::Json(StepsPage { steps, sequence }))
}

/// The steps of a job by its records; only its owner and operators see what clients keep with them.
pub(super) fn steps_of(app: &App, id: JobId, history: &[Record], redacted: bool) -> Vec<StepDetail> {
    let mut steps = app.reader.projection().read(|state| steps::in_records(id, history, state));
    if redacted {
        steps.iter_mut().for_each(|step| step.attributes.clear());
    }
    steps
}

/// List the steps of all running jobs
#[utoipa::path(get, path = "/v1/steps", tag = "steps", params(MomentParams),
    responses((status = 200, body = StepsPage), (status = "default", body = ErrorBody)))]
pub(crate) async fn running(
    State(app): State<App>,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<StepsPage>, ApiError> {
    let page =
        app.reader.read(moment, |state| Ok(StepsPage { steps: steps::running(state), sequence: state.sequence() }));
    page.await.map(axum::Json)
}

/// Send a signal to the processes of a step
#[utoipa::path(operation_id = "signal_step",
    post, path = "/v1/jobs/{id}/steps/{step}/signal", tag = "steps", request_body = StepSignalRequest,
    params(("id" = String, Path, description = "The job."), ("step" = u32, Path, description = "The step."),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn signal(
    State(app): State<App>,
    Path((id, step)): Path<(String, String)>,
    asked: Asked,
    Json(request): Json<StepSignalRequest>,
) -> Answered {
    let StepSignalRequest { signal, component } = request;
    app.jobs_command(asked, Command::SignalStep { job: job_id(&id)?, step: step_id(&step)?, component, signal }).await
}

/// Change the time limit of a running step
#[utoipa::path(operation_id = "set_step_walltime",
    post, path = "/v1/jobs/{id}/steps/{step}/walltime", tag = "steps", request_body = StepWalltimeRequest,
    params(("id" = String, Path, description = "The job."), ("step" = u32, Path, description = "The step."),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn walltime(
    State(app): State<App>,
    Path((id, step)): Path<(String, String)>,
    asked: Asked,
    Json(request): Json<StepWalltimeRequest>,
) -> Answered {
    let StepWalltimeRequest { walltime_seconds } = request;
    app.jobs_command(asked, Command::SetStepWalltime { job: job_id(&id)?, step: step_id(&step)?, walltime_seconds })
        .await
}

/// End a step
#[utoipa::path(operation_id = "end_step",
    post, path = "/v1/jobs/{id}/steps/{step}/end", tag = "steps", request_body = StepEndRequest,
    params(("id" = String, Path, description = "The job."), ("step" = u32, Path, description = "The step."),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn end(
    State(app): State<App>,
    Path((id, step)): Path<(String, String)>,
    asked: Asked,
    Json(request): Json<StepEndRequest>,
) -> Answered {
    let StepEndRequest { component, is_forced } = request;
    app.jobs_command(asked, Command::EndStep { job: job_id(&id)?, step: step_id(&step)?, component, is_forced }).await
}

/// Where a reader of output is.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct OutputParams {
    /// The run that the step belongs to.
    run: RunId,
    /// A number that no other reader of the step has.
    reader: u64,
    /// For each node of the step the offset of the next byte that is wanted, separated by commas: `0` for everything,
    /// `end` for new output only, `-` for a node whose output is complete. Left out, `0` for each.
    from: Option<String>,
    /// Only watch: reading does not acknowledge. Other clients acknowledge with `from`, and earlier output is no
    /// longer kept.
    #[serde(default)]
    watch: bool,
    /// Maximum time to wait for the answer, 0 to 20 seconds; 20 if left out.
    wait_seconds: Option<u32>,
    /// Maximum number of bytes from each node, 1 to 1,048,576.
    max_bytes: Option<u32>,
}

/// Read the output of the tasks of a step
///
/// The answer is an output page in muster's own encoding, as `muster-client` reads it; it comes as soon as there is
/// something, and is empty at the end of the time.
#[utoipa::path(get, path = "/v1/jobs/{id}/steps/{step}/output", tag = "steps",
    params(("id" = String, Path, description = "The job."), ("step" = u32, Path, description = "The step."),
        OutputParams),
    responses((status = 200, content_type = "application/octet-stream", description = "An output page."),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn output(
    State(app): State<App>,
    Path((id, step)): Path<(String, String)>,
    Params(params): Params<OutputParams>,
    Caller(caller): Caller,
) -> Result<impl IntoResponse, ApiError> {
    let (job, step) = (job_id(&id)?, step_id(&step)?);
    let known = own_step(&app, &caller, job, params.run, step).await?;
    let nodes = known.spec.places().count();
    let offsets = match &params.from {
        None => vec![Some(0); nodes],
        Some(text) => text.split(',').map(offset).collect::<Result<_, _>>()?,
    };
    let from = ReadFrom {
        reader: params.reader,
        offsets,
        acknowledges: !params.watch,
        max_bytes: params.max_bytes.unwrap_or(MAX_READ_BYTES).clamp(1, MAX_READ_BYTES),
    };
    let wait = wait(params.wait_seconds.unwrap_or(MAX_READ_SECONDS), MAX_READ_SECONDS)?;
    let streams = Streams { app: &app, known: &known, run: params.run, step };
    let page = tokio::select! {
        page = streams.read(&from, wait) => page?,
        () = app.shutdown.cancelled() => return Err(ApiError::unavailable("the gateway is stopping")),
    };
    let bytes = codec::encode(&page).map_err(|error| ApiError::unavailable(error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes))
}

fn offset(text: &str) -> Result<Option<u64>, ApiError> {
    match text {
        "-" => Ok(None),
        "end" => Ok(Some(AT_END)),
        number => number.parse().map(Some).map_err(|_| ApiError::malformed(format!("from: `{number}` is no offset"))),
    }
}

/// A step whose streams the caller may use.
async fn own_step(app: &App, caller: &Owner, job: JobId, run: RunId, step: StepId) -> Result<Arc<KnownStep>, ApiError> {
    let known = known_steps::find(app, job, run, step).await?;
    if caller.user != known.owner && !app.is_operator(caller) {
        return Err(ApiError::new(ErrorCode::PermissionDenied, format!("job {job} belongs to {}", known.owner)));
    }
    Ok(known)
}

/// Which input it is.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct InputParams {
    /// The run that the step belongs to.
    run: RunId,
    /// The offset of its first byte in all input of the step.
    offset: u64,
    /// Whether this is the end of the input.
    #[serde(default)]
    is_last: bool,
    /// Only for tasks of these groups of the step, by their places from 0, as `0,2`; left out, for all that read.
    groups: Option<String>,
    /// Maximum time to wait for room, 0 to 20 seconds; 0 if left out.
    #[serde(default)]
    wait_seconds: u32,
}

/// Send input to the tasks of a step
///
/// The body is bytes. Bytes that were sent before are skipped, so they can be sent again when an answer is lost.
#[utoipa::path(post, path = "/v1/jobs/{id}/steps/{step}/input", tag = "steps",
    params(("id" = String, Path, description = "The job."), ("step" = u32, Path, description = "The step."),
        InputParams),
    request_body(content_type = "application/octet-stream", description = "At most 1,048,576 bytes."),
    responses((status = 200, body = StepInputAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn input(
    State(app): State<App>,
    Path((id, step)): Path<(String, String)>,
    Params(params): Params<InputParams>,
    Caller(caller): Caller,
    Raw(bytes): Raw,
) -> Result<axum::Json<StepInputAnswer>, ApiError> {
    let (job, step) = (job_id(&id)?, step_id(&step)?);
    let known = own_step(&app, &caller, job, params.run, step).await?;
    let streams = Streams { app: &app, known: &known, run: params.run, step };
    let wait = wait(params.wait_seconds, MAX_READ_SECONDS)?;
    let groups = params.groups.as_deref().map(groups).transpose()?;
    let there_are = known.spec.groups.len();
    let all = IndexSet::first_n(u32::try_from(there_are).unwrap_or(u32::MAX));
    if let Some(unknown) = groups.as_ref().filter(|groups| !all.contains_all(groups)) {
        return Err(ApiError::invalid(format!("groups: {unknown} are not all among the {there_are} of the step")));
    }
    let said = Said { offset: params.offset, bytes: &bytes, is_last: params.is_last };
    let length = streams.write(&said, groups.as_ref(), wait).await?;
    Ok(axum::Json(StepInputAnswer { length }))
}

fn groups(text: &str) -> Result<IndexSet, ApiError> {
    text.parse().map_err(|_| ApiError::malformed(format!("groups: `{text}` is no list of groups")))
}

/// Report the size of the client's terminal
#[utoipa::path(post, path = "/v1/jobs/{id}/steps/{step}/terminal", tag = "steps", request_body = StepTerminalRequest,
    params(("id" = String, Path, description = "The job."), ("step" = u32, Path, description = "The step.")),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn terminal(
    State(app): State<App>,
    Path((id, step)): Path<(String, String)>,
    Caller(caller): Caller,
    Json(request): Json<StepTerminalRequest>,
) -> Result<axum::Json<serde_json::Value>, ApiError> {
    let (job, step) = (job_id(&id)?, step_id(&step)?);
    let known = own_step(&app, &caller, job, request.run, step).await?;
    Streams { app: &app, known: &known, run: request.run, step }.resize(request.size).await?;
    Ok(axum::Json(serde_json::json!({})))
}

/// End a job that holds resources for its client, with the client's status
#[utoipa::path(post, path = "/v1/jobs/{id}/conclude", tag = "jobs", request_body = ConcludeRequest,
    params(("id" = String, Path, description = "The job."),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn conclude(
    State(app): State<App>,
    Path(id): Path<String>,
    asked: Asked,
    Json(request): Json<ConcludeRequest>,
) -> Answered {
    app.jobs_command(asked, Command::ConcludeJob { job: job_id(&id)?, status: request.status }).await
}

/// Report that the client of a job lives
///
/// From the first report on, the job is cancelled when its client is silent for this long, whether it waits or runs.
#[utoipa::path(post, path = "/v1/jobs/{id}/keep", tag = "jobs", request_body = KeepRequest,
    params(("id" = String, Path, description = "The job."),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn keep(
    State(app): State<App>,
    Path(id): Path<String>,
    asked: Asked,
    Json(request): Json<KeepRequest>,
) -> Answered {
    app.jobs_command(asked, Command::KeepJob { job: job_id(&id)?, seconds: request.seconds }).await
}
