//! Advance reservations, and times in which nodes serve no jobs.

use crate::{
    app::{Answered, App, Asked},
    body::Json,
    error::ApiError,
    params::{At, MomentParams, NoParams, Path},
    views,
};
use axum::extract::State;
use muster_schemas::{
    command::Command,
    plan::ReservationSpec,
    views::{ClosuresRequest, CommandAnswer, ErrorBody, ReservationsPage},
};

/// List reservations
#[utoipa::path(operation_id = "list_reservations",
    get, path = "/v1/reservations", tag = "nodes", params(MomentParams),
    responses((status = 200, body = ReservationsPage), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(
    State(app): State<App>,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<ReservationsPage>, ApiError> {
    app.reader.read(moment, |state| Ok(views::reservations_page(state))).await.map(axum::Json)
}

/// Keep nodes for some jobs for a time
#[utoipa::path(post, path = "/v1/reservations", tag = "nodes", request_body = ReservationSpec,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn reserve(State(app): State<App>, asked: Asked, Json(spec): Json<ReservationSpec>) -> Answered {
    app.jobs_command(asked, Command::Reserve { reservation: Box::new(spec) }).await
}

/// Change a reservation
///
/// Jobs running in it continue.
#[utoipa::path(operation_id = "change_reservation",
    put, path = "/v1/reservations/{name}", tag = "nodes", request_body = ReservationSpec,
    params(("name" = String, Path, description = "The reservation."),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn change(
    State(app): State<App>,
    Path(name): Path<String>,
    asked: Asked,
    Json(spec): Json<ReservationSpec>,
) -> Answered {
    let reservation = Box::new(ReservationSpec { name, ..spec });
    app.jobs_command(asked, Command::ChangeReservation { reservation }).await
}

/// Delete a reservation
#[utoipa::path(delete, path = "/v1/reservations/{name}", tag = "nodes",
    params(("name" = String, Path, description = "The reservation."),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn remove(State(app): State<App>, Path(name): Path<String>, asked: Asked) -> Answered {
    app.jobs_command(asked, Command::RemoveReservation { name }).await
}

/// Set the times in which nodes serve no jobs
#[utoipa::path(post, path = "/v1/nodes/actions/set-closures", tag = "nodes", request_body = ClosuresRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn set_closures(
    State(app): State<App>,
    asked: Asked,
    Json(request): Json<ClosuresRequest>,
) -> Answered {
    let ClosuresRequest { nodes, closures } = request;
    app.jobs_command(asked, Command::SetNodeClosures { nodes, closures }).await
}
