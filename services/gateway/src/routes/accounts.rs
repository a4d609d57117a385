//! Accounts, users, associations and service classes.

use crate::{
    app::{Answered, App, Asked},
    body::Json,
    error::ApiError,
    params::{At, MomentParams, NoParams},
    views,
};
use axum::extract::State;
use muster_schemas::{
    Timestamp,
    command::Command,
    views::{AccountsPage, AccountsRequest, ClassRequest, CommandAnswer, ErrorBody},
};

/// List accounts, users, associations and service classes
#[utoipa::path(operation_id = "list_accounts",
    get, path = "/v1/accounts", tag = "cluster", params(MomentParams),
    responses((status = 200, body = AccountsPage), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(
    State(app): State<App>,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<AccountsPage>, ApiError> {
    // Running jobs count up to now, or up to the wanted moment.
    let now = moment.at.or_else(|| moment.at_seq.is_none().then(Timestamp::now));
    let page = |state: &_| Ok(views::accounts_page(state, now));
    app.reader.read(moment, page).await.map(axum::Json)
}

/// Change accounts, users, associations and service classes, all of it or nothing
#[utoipa::path(operation_id = "change_accounts",
    post, path = "/v1/accounts/actions/change", tag = "cluster", request_body = AccountsRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn change(State(app): State<App>, asked: Asked, Json(request): Json<AccountsRequest>) -> Answered {
    app.jobs_command(asked, Command::ChangeAccounts { changes: request.changes }).await
}

/// Move waiting components to another service class
#[utoipa::path(post, path = "/v1/jobs/actions/change-class", tag = "jobs", request_body = ClassRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn change_class(State(app): State<App>, asked: Asked, Json(request): Json<ClassRequest>) -> Answered {
    let ClassRequest { jobs, class } = request;
    app.jobs_command(asked, Command::ChangeClass { jobs, class }).await
}
