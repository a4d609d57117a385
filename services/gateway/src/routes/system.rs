//! About the gateway itself.

use crate::{app::App, error::ApiError};
use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use muster_schemas::{
    command::{Query, QueryAnswer},
    views::ErrorBody,
};
use muster_telemetry::metrics::render_prometheus;
use std::time::Duration;

/// How long the ledger may take to show that it is there.
const HEALTH_PATIENCE: Duration = Duration::from_secs(1);

/// Show the metrics of this process, in the text format of Prometheus
#[utoipa::path(get, path = "/metrics", tag = "system",
    responses((status = 200, content_type = "text/plain", body = String), (status = "default", body = ErrorBody)))]
pub(crate) async fn metrics(State(app): State<App>) -> Response {
    app.gauges.count(&app.reader);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], render_prometheus()).into_response()
}

/// Tell whether the gateway and the ledger behind it answer
#[utoipa::path(get, path = "/healthz", tag = "system",
    responses((status = 200, content_type = "text/plain", body = String), (status = "default", body = ErrorBody)))]
pub(crate) async fn healthz(State(app): State<App>) -> Result<&'static str, ApiError> {
    match app.ledger.clone().with_patience(HEALTH_PATIENCE).query(&Query::Head).await? {
        QueryAnswer::Head { .. } => Ok("ok\n"),
        other => Err(crate::reader::unexpected(&other)),
    }
}
