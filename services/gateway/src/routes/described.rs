//! Jobs with a description, a template or their own tasks: submitting, creating, entering, holding and ending them.

use super::jobs::{find, may_see_all};
use crate::{
    app::{Answered, App, Asked, Caller},
    body::Json,
    error::ApiError,
    params::{At, MomentParams, NoParams, Path, job_id},
    reader::unexpected,
};
use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use flate2::read::GzDecoder;
use muster_schemas::{
    JobId,
    command::{Command, JobDocuments, Query, QueryAnswer},
    event::Owner,
    filter::JobDocument,
    resources::Alternative,
    views::{
        CommandAnswer, ConfigureJobRequest, DescribedJobRequest, DescriptionView, EndRequest, ErrorBody, ErrorCode,
        HoldUntilRequest,
    },
};
use std::{io::Read as _, sync::Arc};

/// The largest description, in bytes.
const MAX_DOCUMENT_BYTES: u64 = 16 << 20;

/// Submit a job with a description, a template or its own tasks
#[utoipa::path(operation_id = "submit_described_job",
    post, path = "/v1/jobs/described", tag = "jobs", request_body = DescribedJobRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn submit(State(app): State<App>, asked: Asked, Json(request): Json<DescribedJobRequest>) -> Answered {
    let DescribedJobRequest { spec, intake } = request;
    let asked = asked.in_group_of(std::slice::from_ref(&spec)).await?;
    app.jobs_command(asked, Command::SubmitDocument { spec: Box::new(spec), intake: Box::new(intake) }).await
}

/// Change a job that is still being created
#[utoipa::path(operation_id = "configure_job",
    put, path = "/v1/jobs/{id}/described", tag = "jobs", request_body = ConfigureJobRequest,
    params(("id" = String, Path, description = "The job."),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn configure(
    State(app): State<App>,
    Path(id): Path<String>,
    asked: Asked,
    Json(request): Json<ConfigureJobRequest>,
) -> Answered {
    let ConfigureJobRequest { made_from, spec, intake } = request;
    let (job, spec, intake) = (job_id(&id)?, Box::new(spec), Box::new(intake));
    let command = Command::ConfigureJob { job, made_from, spec, intake };
    app.jobs_command(asked, command).await
}

/// Let a job that was being created, or that was refused, enter the queue
#[utoipa::path(post, path = "/v1/jobs/{id}/enter", tag = "jobs",
    params(("id" = String, Path, description = "The job."),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn enter(State(app): State<App>, Path(id): Path<String>, asked: Asked) -> Answered {
    app.jobs_command(asked, Command::EnterJob { job: job_id(&id)? }).await
}

/// Hold jobs until a time, or lift such a hold
#[utoipa::path(post, path = "/v1/jobs/actions/hold-until", tag = "jobs", request_body = HoldUntilRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn hold_until(
    State(app): State<App>,
    asked: Asked,
    Json(request): Json<HoldUntilRequest>,
) -> Answered {
    let HoldUntilRequest { jobs, until } = request;
    app.jobs_command(asked, Command::HoldUntil { jobs, until }).await
}

/// End jobs: cancel them or declare them finished, with or without grace
#[utoipa::path(operation_id = "end_jobs",
    post, path = "/v1/jobs/actions/end", tag = "jobs", request_body = EndRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn end(State(app): State<App>, asked: Asked, Json(request): Json<EndRequest>) -> Answered {
    let EndRequest { jobs, ending } = request;
    app.jobs_command(asked, Command::EndJobs { jobs, ending }).await
}

/// Show the description of a job
#[utoipa::path(get, path = "/v1/jobs/{id}/description", tag = "jobs",
    params(("id" = String, Path, description = "The job."), MomentParams),
    responses((status = 200, body = DescriptionView), (status = "default", body = ErrorBody)))]
pub(crate) async fn description(
    State(app): State<App>,
    Path(id): Path<String>,
    Caller(caller): Caller,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<DescriptionView>, ApiError> {
    let (documents, alternatives) = documents(&app, moment, job_id(&id)?, &caller).await?;
    let JobDocuments { version, received, effective, spec, tasks, template } = documents;
    let alternatives = alternatives.to_vec();
    Ok(axum::Json(DescriptionView { version, received, effective, spec, tasks, template, alternatives }))
}

/// Show a job's description as it was received, byte for byte
#[utoipa::path(get, path = "/v1/jobs/{id}/document", tag = "jobs",
    params(("id" = String, Path, description = "The job."), MomentParams),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn document(
    State(app): State<App>,
    Path(id): Path<String>,
    Caller(caller): Caller,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<Response, ApiError> {
    let id = job_id(&id)?;
    let received = documents(&app, moment, id, &caller).await?.0.received;
    let received = received.ok_or_else(|| ApiError::not_found(format!("job {id} came without a description")))?;
    let kind = match received.format.as_str() {
        "xml" => "application/xml",
        "json" => "application/json",
        _ => "application/octet-stream",
    };
    Ok(([(header::CONTENT_TYPE, kind)], plain(&received)?).into_response())
}

/// The description and the request of a job, for its owner and operators.
async fn documents(
    app: &App,
    moment: MomentParams,
    job: JobId,
    caller: &Owner,
) -> Result<(JobDocuments, Arc<[Alternative]>), ApiError> {
    let found = find(app, moment, job).await?;
    if !may_see_all(app, caller, &found.view) {
        let message = format!("only its owner and operators may see what job {job} was described with");
        return Err(ApiError::new(ErrorCode::PermissionDenied, message));
    }
    match app.ledger.query(&Query::JobDocuments { job: job.whole() }).await? {
        QueryAnswer::JobDocuments(documents) => Ok((*documents, found.alternatives)),
        other => Err(unexpected(&other)),
    }
}

fn plain(document: &JobDocument) -> Result<Vec<u8>, ApiError> {
    if !document.is_compressed {
        return Ok(document.bytes.to_vec());
    }
    let mut bytes = Vec::new();
    let read = GzDecoder::new(&*document.bytes).take(MAX_DOCUMENT_BYTES).read_to_end(&mut bytes);
    read.map_err(|error| ApiError::invalid(format!("the description cannot be decompressed: {error}")))?;
    Ok(bytes)
}
