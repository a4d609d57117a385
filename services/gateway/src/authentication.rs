//! Authentication of requests.

use crate::{
    app::{App, Caller, OwnJob},
    budgets::Admission,
    caller::Peer,
    error::ApiError,
    own_job,
};
use axum::{
    extract::{ConnectInfo, Request, State},
    http::header,
    middleware::Next,
    response::Response,
};
use muster_schemas::{
    command::{Query, QueryAnswer},
    event::Owner,
    job_token::JobToken,
};
use std::sync::Arc;

/// Lets a request through if its sender is known.
pub(crate) async fn authenticate(
    State(app): State<App>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    app.metrics.requests.add(1, &[]);
    let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (owner, own_job) = match app.callers.job_token(peer, authorization) {
        Some(token) => (of_job(&app, peer, &token).await?, Some(token.job)),
        None => (app.callers.identify(peer, authorization).await?, None),
    };
    if let Some(job) = own_job
        && !own_job::may_ask(job, request.method(), request.uri().path(), request.uri().query())
    {
        return Err(own_job::not_its_own(job));
    }
    if let Some(admission) = request.extensions().get::<Arc<Admission>>() {
        admission.belongs_to(owner.uid)?;
    }
    request.extensions_mut().insert(Caller(owner));
    if let Some(job) = own_job {
        request.extensions_mut().insert(OwnJob(job));
    }
    let response = next.run(request).await;
    if !response.status().is_success() {
        app.metrics.refused_requests.add(1, &[]);
    }
    Ok(response)
}

/// The owner of the job that shows a token.
async fn of_job(app: &App, peer: Peer, token: &JobToken) -> Result<Arc<Owner>, ApiError> {
    match owner(app, token).await? {
        Some(owner) => Ok(owner),
        None => Err(app.callers.refuse(peer, "this is not the token of a running job").await),
    }
}

/// The owner of the job of a token; `None` if the token is wrong, or its run has ended.
async fn owner(app: &App, token: &JobToken) -> Result<Option<Arc<Owner>>, ApiError> {
    let look = || {
        app.reader.projection().read(|state| {
            let run = state.run(token.run).filter(|run| run.job == token.job)?;
            Some(state.job(run.job)?.owner.clone())
        })
    };
    let Some(owner) = (match look() {
        Some(owner) => Some(owner),
        // A run can be so new that this gateway has not heard of it.
        None => {
            app.reader.catch_up(None).await?;
            look()
        }
    }) else {
        return Ok(None);
    };
    if !app.proofs.has(token) {
        match app.ledger.query(&Query::JobToken(*token)).await? {
            QueryAnswer::JobToken(true) => app.proofs.learn(token),
            QueryAnswer::JobToken(false) => return Ok(None),
            other => return Err(crate::reader::unexpected(&other)),
        }
    }
    Ok(Some(owner))
}
