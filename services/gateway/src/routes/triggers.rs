//! Triggers.

use crate::{
    app::{Answered, App, Asked, Caller},
    body::Json,
    error::ApiError,
    params::{At, MomentParams, NoParams},
};
use axum::extract::State;
use muster_schemas::{
    command::Command,
    trigger::{TriggerSelection, TriggerSpec, TriggerView, TriggersPage},
    views::{CommandAnswer, ErrorBody},
};

/// List triggers
///
/// Operators get those of everybody, others their own.
#[utoipa::path(operation_id = "list_triggers",
    get, path = "/v1/triggers", tag = "cluster", params(MomentParams),
    responses((status = 200, body = TriggersPage), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(
    State(app): State<App>,
    Caller(caller): Caller,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<TriggersPage>, ApiError> {
    let sees_all = app.is_operator(&caller);
    let page = app.reader.read(moment, |state| {
        let own = state.triggers().filter(|(_, trigger)| sees_all || trigger.owner.user == caller.user);
        let triggers = own.map(|(number, trigger)| TriggerView {
            trigger: number,
            user: trigger.owner.user.clone(),
            spec: (*trigger.spec).clone(),
            job_number: trigger.spec.on.job().map(|job| state.number_of(job)),
        });
        Ok(TriggersPage { triggers: triggers.collect(), sequence: state.sequence() })
    });
    page.await.map(axum::Json)
}

/// Set a trigger
///
/// Its program runs once on the host of a notifier, as the caller, when what it watches happens.
#[utoipa::path(operation_id = "set_trigger",
    post, path = "/v1/triggers", tag = "cluster", request_body = TriggerSpec,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn set(State(app): State<App>, asked: Asked, Json(spec): Json<TriggerSpec>) -> Answered {
    app.jobs_command(asked, Command::SetTrigger { spec: Box::new(spec) }).await
}

/// Clear triggers
#[utoipa::path(operation_id = "clear_triggers",
    post, path = "/v1/triggers/actions/clear", tag = "cluster", request_body = TriggerSelection,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn clear(State(app): State<App>, asked: Asked, Json(which): Json<TriggerSelection>) -> Answered {
    app.jobs_command(asked, Command::ClearTriggers { which }).await
}
