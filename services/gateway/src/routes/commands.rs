//! Requests that change something.

use crate::{
    app::{Answered, App, Asked},
    body::Json,
    error::ApiError,
    params::{Params, Path, job_id},
};
use axum::extract::State;
use muster_schemas::{
    cluster::ClusterChange,
    command::Command,
    policy::Policy,
    views::{
        CommandAnswer, CopyAheadRequest, DrainRequest, ErrorBody, HoldRequest, JobsRequest, ModifyRequest,
        PolicyRefusal, PolicyWarning, PowerRequest, RefusalNote, ReleaseRequest, RequeueRequest, ResumeNodesRequest,
        ShrinkRequest, SignalRequest, SubmitRequest, TellRequest,
    },
};
use serde::Deserialize;
use utoipa::IntoParams;

/// Submit jobs, all or none
#[utoipa::path(operation_id = "submit_jobs",
    post, path = "/v1/jobs", tag = "jobs", request_body = SubmitRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn submit(State(app): State<App>, asked: Asked, Json(request): Json<SubmitRequest>) -> Answered {
    let asked = asked.in_group_of(&request.jobs).await?;
    app.jobs_command(asked, Command::Submit { jobs: request.jobs }).await
}

/// Cancel jobs
#[utoipa::path(post, path = "/v1/jobs/actions/cancel", tag = "jobs", request_body = JobsRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn cancel(State(app): State<App>, asked: Asked, Json(request): Json<JobsRequest>) -> Answered {
    app.jobs_command(asked, Command::Cancel { jobs: request.jobs }).await
}

/// Add holds to jobs
#[utoipa::path(post, path = "/v1/jobs/actions/hold", tag = "jobs", request_body = HoldRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn hold(State(app): State<App>, asked: Asked, Json(request): Json<HoldRequest>) -> Answered {
    let HoldRequest { jobs, holds, reason } = request;
    app.jobs_command(asked, Command::Hold { jobs, holds, reason }).await
}

/// Remove holds of jobs
#[utoipa::path(post, path = "/v1/jobs/actions/release", tag = "jobs", request_body = ReleaseRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn release(State(app): State<App>, asked: Asked, Json(request): Json<ReleaseRequest>) -> Answered {
    let ReleaseRequest { jobs, holds } = request;
    app.jobs_command(asked, Command::Release { jobs, holds }).await
}

/// Suspend running jobs. Their cores are free for others meanwhile
#[utoipa::path(post, path = "/v1/jobs/actions/suspend", tag = "jobs", request_body = JobsRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn suspend(State(app): State<App>, asked: Asked, Json(request): Json<JobsRequest>) -> Answered {
    app.jobs_command(asked, Command::Suspend { jobs: request.jobs }).await
}

/// Resume suspended jobs as soon as their cores are free
#[utoipa::path(post, path = "/v1/jobs/actions/resume", tag = "jobs", request_body = JobsRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn resume(State(app): State<App>, asked: Asked, Json(request): Json<JobsRequest>) -> Answered {
    app.jobs_command(asked, Command::Resume { jobs: request.jobs }).await
}

/// Put jobs back into the queue
#[utoipa::path(post, path = "/v1/jobs/actions/requeue", tag = "jobs", request_body = RequeueRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn requeue(State(app): State<App>, asked: Asked, Json(request): Json<RequeueRequest>) -> Answered {
    let RequeueRequest { jobs, hold, delay_seconds } = request;
    app.jobs_command(asked, Command::Requeue { jobs, hold, delay_seconds }).await
}

/// Send a signal to the processes of running jobs
#[utoipa::path(operation_id = "signal_jobs",
    post, path = "/v1/jobs/actions/signal", tag = "jobs", request_body = SignalRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn signal(State(app): State<App>, asked: Asked, Json(request): Json<SignalRequest>) -> Answered {
    let SignalRequest { jobs, signal } = request;
    app.jobs_command(asked, Command::Signal { jobs, signal }).await
}

/// Change jobs
#[utoipa::path(post, path = "/v1/jobs/actions/modify", tag = "jobs", request_body = ModifyRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn modify(State(app): State<App>, asked: Asked, Json(request): Json<ModifyRequest>) -> Answered {
    let ModifyRequest { jobs, change } = request;
    app.jobs_command(asked, Command::Modify { jobs, change }).await
}

/// Send a message to running jobs
///
/// It is written after the output of their scripts on standard error.
#[utoipa::path(post, path = "/v1/jobs/actions/tell", tag = "jobs", request_body = TellRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn tell(State(app): State<App>, asked: Asked, Json(request): Json<TellRequest>) -> Answered {
    let TellRequest { jobs, text } = request;
    app.jobs_command(asked, Command::TellJobs { jobs, text }).await
}

/// Let a running job give up nodes
///
/// It continues on its other nodes. Steps with tasks on the nodes are ended, and the nodes are free when all processes there
/// have ended.
#[utoipa::path(post, path = "/v1/jobs/{id}/shrink", tag = "jobs", request_body = ShrinkRequest,
    params(("id" = String, Path, description = "The job."),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn shrink(
    State(app): State<App>,
    Path(id): Path<String>,
    asked: Asked,
    Json(request): Json<ShrinkRequest>,
) -> Answered {
    let ShrinkRequest { nodes, keep, component } = request;
    app.jobs_command(asked, Command::ShrinkJob { job: job_id(&id)?, nodes, keep, component }).await
}

/// Copy the files of a job ahead of its start
///
/// The job waits on, and then runs on the node that has them.
#[utoipa::path(post, path = "/v1/jobs/{id}/copy_ahead", tag = "jobs", request_body = CopyAheadRequest,
    params(("id" = String, Path, description = "The job."),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn copy_ahead(
    State(app): State<App>,
    Path(id): Path<String>,
    asked: Asked,
    Json(request): Json<CopyAheadRequest>,
) -> Answered {
    app.jobs_command(asked, Command::CopyAhead { job: job_id(&id)?, node: request.node }).await
}

/// Note a refusal by a program itself
///
/// The log records it like refusals by the system, with user, request and reason. Only a limited number per user is
/// recorded in a short time.
#[utoipa::path(post, path = "/v1/refusals", tag = "cluster", request_body = RefusalNote,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn note_refusal(State(app): State<App>, asked: Asked, Json(note): Json<RefusalNote>) -> Answered {
    let RefusalNote { what, why } = note;
    // The program need not wait: its end does not undo the note.
    let noting = tokio::spawn(async move { app.jobs_command(asked, Command::NoteRefusal { what, why }).await });
    noting.await.unwrap_or_else(|error| Err(ApiError::unavailable(error.to_string())))
}

/// Stop new jobs on nodes
#[utoipa::path(post, path = "/v1/nodes/actions/drain", tag = "nodes", request_body = DrainRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn drain(State(app): State<App>, asked: Asked, Json(request): Json<DrainRequest>) -> Answered {
    let DrainRequest { nodes, reason, is_down } = request;
    app.jobs_command(asked, Command::DrainNodes { nodes, reason, is_down }).await
}

/// Let drained nodes take jobs again
#[utoipa::path(post, path = "/v1/nodes/actions/resume", tag = "nodes", request_body = ResumeNodesRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn resume_nodes(
    State(app): State<App>,
    asked: Asked,
    Json(request): Json<ResumeNodesRequest>,
) -> Answered {
    app.jobs_command(asked, Command::ResumeNodes { nodes: request.nodes }).await
}

/// Put nodes to sleep, or wake them
#[utoipa::path(post, path = "/v1/nodes/actions/power", tag = "nodes", request_body = PowerRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn power(State(app): State<App>, asked: Asked, Json(request): Json<PowerRequest>) -> Answered {
    let PowerRequest { nodes, way } = request;
    app.jobs_command(asked, Command::SetPower { nodes, way }).await
}

/// How a configuration is applied.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ConfigureParams {
    /// Keep everything that is not named. Otherwise nodes, queues and licences that are not named are removed, and
    /// settings take their defaults; lists of users that would become empty unnamed are refused.
    #[serde(default)]
    keep_unnamed: bool,
}

/// Apply this configuration to the cluster
#[utoipa::path(operation_id = "configure_cluster",
    put, path = "/v1/config", tag = "cluster", request_body = ClusterChange,
    params(ConfigureParams,
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn configure(
    State(app): State<App>,
    Params(params): Params<ConfigureParams>,
    asked: Asked,
    Json(change): Json<ClusterChange>,
) -> Answered {
    let command = Command::Configure { change: Box::new(change), keep_unnamed: params.keep_unnamed };
    app.jobs_command(asked, command).await
}

/// Put this policy in force
#[utoipa::path(put, path = "/v1/policy", tag = "cluster", request_body = Policy,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn set_policy(State(app): State<App>, asked: Asked, Json(policy): Json<Policy>) -> Answered {
    app.jobs_command(asked, Command::SetPolicy { policy: Box::new(policy) }).await
}

/// Put on record that the files of a policy have mistakes; the policy in force stays
#[utoipa::path(post, path = "/v1/policy/refusals", tag = "cluster", request_body = PolicyRefusal,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn refuse_policy(
    State(app): State<App>,
    asked: Asked,
    Json(refusal): Json<PolicyRefusal>,
) -> Answered {
    let PolicyRefusal { name, sources, mistakes } = refusal;
    app.jobs_command(asked, Command::RefusePolicy { name, sources, mistakes }).await
}

/// Put on record what is doubtful about the files of the policy in force
#[utoipa::path(post, path = "/v1/policy/warnings", tag = "cluster", request_body = PolicyWarning,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn warn_of_policy(
    State(app): State<App>,
    asked: Asked,
    Json(warning): Json<PolicyWarning>,
) -> Answered {
    let PolicyWarning { name, warnings } = warning;
    app.jobs_command(asked, Command::WarnOfPolicy { name, warnings }).await
}
