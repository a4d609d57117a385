//! Agents, and the archives of jobs that run at them.

use crate::{
    agents::{archives::NewPiece, identity::Agent, orders, reports},
    app::{App, Caller},
    body::{self, Raw},
    error::ApiError,
    params::{NoParams, Params, Path},
};
use axum::{
    extract::{Request, State},
    http::header,
    middleware::Next,
    response::{IntoResponse, Response},
};
use muster_schemas::{
    PartId,
    agent::{AgentCluster, AgentOrders, AgentPull, AgentReport, ArchiveProgress, KnownArchive, to_hex},
    command::QueryAnswer,
    views::ErrorBody,
};
use serde::Deserialize;
use utoipa::IntoParams;

/// Lets a request of an agent through if its token is known.
pub(crate) async fn authenticate(
    State(app): State<App>,
    axum::extract::ConnectInfo(peer): axum::extract::ConnectInfo<crate::caller::Peer>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    app.metrics.requests.add(1, &[]);
    let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = authorization.and_then(crate::caller::bearer);
    let node = token.and_then(|token| app.agents.as_ref()?.node(token));
    let Some(node) = node else {
        return Err(app.callers.refuse(peer, "this is not the token of an agent").await);
    };
    if let Some(admission) = request.extensions().get::<std::sync::Arc<crate::budgets::Admission>>() {
        admission.belongs_to_agent(&node)?;
    }
    request.extensions_mut().insert(Agent(node));
    let response = next.run(request).await;
    if !response.status().is_success() {
        app.metrics.refused_requests.add(1, &[]);
    }
    Ok(response)
}

/// Where a piece of an archive begins.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PieceParams {
    /// The offset of its first byte.
    #[serde(default)]
    offset: u64,
}

/// Which piece of staged files.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StagedParams {
    /// The part of a run that they are for.
    part: u64,
    /// The offset of its first byte.
    #[serde(default)]
    offset: u64,
}

/// Which piece of an archive.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ArchiveParams {
    /// The offset of its first byte.
    #[serde(default)]
    offset: u64,
    /// The size of the whole archive, in bytes.
    total: u64,
    /// A name that the archive can be found by, too, such as `md5:` and another hash of it.
    name: Option<String>,
}

/// Show the cluster to an agent
#[utoipa::path(get, path = "/v1/agent/cluster", tag = "agents",
    responses((status = 200, body = AgentCluster), (status = "default", body = ErrorBody)))]
pub(crate) async fn cluster(State(app): State<App>, _agent: Agent) -> Result<axum::Json<AgentCluster>, ApiError> {
    match app.ledger.query(&muster_schemas::command::Query::Head).await? {
        QueryAnswer::Head { cluster_id, feature_level, .. } => {
            Ok(axum::Json(AgentCluster { cluster: to_hex(&cluster_id), feature_level }))
        }
        other => Err(crate::reader::unexpected(&other)),
    }
}

/// Ask for orders, as an agent
///
/// The node is alive. The answer has all orders about parts of runs that the agent lacks, and about those that it has.
#[utoipa::path(post, path = "/v1/agent/pull", tag = "agents", request_body = AgentPull,
    responses((status = 200, body = AgentOrders), (status = "default", body = ErrorBody)))]
pub(crate) async fn pull(
    State(app): State<App>,
    agent: Agent,
    Raw(bytes): Raw,
) -> Result<axum::Json<AgentOrders>, ApiError> {
    orders::pull(&app, &agent, body::parse(&bytes)?).await.map(axum::Json)
}

/// Report that a part of a run has started or ended
///
/// The archive of what it has left is unpacked first, as the owner of the job, in the folder that it was submitted in. If
/// it is refused, nothing is reported: report the end again without it.
#[utoipa::path(post, path = "/v1/agent/report", tag = "agents", request_body = AgentReport,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn report(
    State(app): State<App>,
    agent: Agent,
    Raw(bytes): Raw,
) -> Result<axum::Json<serde_json::Value>, ApiError> {
    reports::report(&app, &agent, body::parse(&bytes)?).await?;
    Ok(axum::Json(serde_json::json!({})))
}

/// Get a piece of the files that a job brings
#[utoipa::path(get, path = "/v1/agent/stage-in/{sum}", tag = "agents",
    params(StagedParams, ("sum" = String, Path, description = "The BLAKE3 hash of the archive.")),
    responses((status = 200, content_type = "application/octet-stream", body = String),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn stage_in(
    State(app): State<App>,
    agent: Agent,
    Path(sum): Path<String>,
    Params(params): Params<StagedParams>,
) -> Result<Response, ApiError> {
    let part = PartId::from_number(params.part);
    let piece = reports::stage_in_piece(&app, &agent, (part, &sum), params.offset).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], piece.bytes).into_response())
}

/// Send a piece of the archive of what a part of a run has left
#[utoipa::path(operation_id = "send_output", put, path = "/v1/agent/output/{part}", tag = "agents",
    request_body(content = String, content_type = "application/octet-stream"),
    params(PieceParams, ("part" = u64, Path, description = "The part.")),
    responses((status = 200, body = ArchiveProgress), (status = "default", body = ErrorBody)))]
pub(crate) async fn output(
    State(app): State<App>,
    agent: Agent,
    Path(part): Path<u64>,
    Params(params): Params<PieceParams>,
    Raw(bytes): Raw,
) -> Result<axum::Json<ArchiveProgress>, ApiError> {
    let part = PartId::from_number(part);
    reports::output_piece(&app, &agent, part, params.offset, bytes).await.map(axum::Json)
}

/// Show whether the gateway keeps an archive of the caller
#[utoipa::path(operation_id = "get_archive", get, path = "/v1/archives/{name}", tag = "jobs",
    params(("name" = String, Path, description = "The BLAKE3 hash of the archive, or a name that it was given.")),
    responses((status = 200, body = KnownArchive), (status = "default", body = ErrorBody)))]
pub(crate) async fn known_archive(
    State(app): State<App>,
    Caller(caller): Caller,
    Path(name): Path<String>,
    Params(NoParams {}): Params<NoParams>,
) -> Result<axum::Json<KnownArchive>, ApiError> {
    app.archives.known(caller.uid, name).await.map(axum::Json)
}

/// Send a piece of an archive for jobs of the caller
///
/// It is kept as long as a job needs it, and at least a day.
#[utoipa::path(operation_id = "send_archive", put, path = "/v1/archives/{sum}", tag = "jobs",
    request_body(content = String, content_type = "application/octet-stream"),
    params(ArchiveParams, ("sum" = String, Path, description = "The BLAKE3 hash of the archive.")),
    responses((status = 200, body = KnownArchive), (status = "default", body = ErrorBody)))]
pub(crate) async fn archive_piece(
    State(app): State<App>,
    Caller(caller): Caller,
    Path(sum): Path<String>,
    Params(params): Params<ArchiveParams>,
    Raw(bytes): Raw,
) -> Result<axum::Json<KnownArchive>, ApiError> {
    let ArchiveParams { offset, total, name } = params;
    app.archives.add(caller.uid, NewPiece { sum, offset, total, name, bytes }).await.map(axum::Json)
}
