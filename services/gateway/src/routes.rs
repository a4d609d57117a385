//! The API's addresses.

mod accounts;
mod agents;
mod commands;
mod crontabs;
mod described;
mod document;
mod events;
mod filters;
mod jobs;
mod known_steps;
mod ledgers;
mod lists;
mod log;
mod openapi;
mod plans;
mod reservations;
mod state;
mod steps;
mod system;
mod triggers;

pub use openapi::openapi;

use crate::{app::App, authentication::authenticate, error::ApiError};
use axum::{
    Router,
    http::StatusCode,
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post, put},
};
use muster_schemas::views::{ErrorBody, ErrorCode};

/// All addresses.
pub(crate) fn router(app: App) -> Router {
    let known_callers = Router::new()
        .route("/v1/jobs", get(jobs::list_jobs).post(commands::submit))
        .route("/v1/jobs/actions/cancel", post(commands::cancel))
        .route("/v1/jobs/actions/hold", post(commands::hold))
        .route("/v1/jobs/actions/release", post(commands::release))
        .route("/v1/jobs/actions/suspend", post(commands::suspend))
        .route("/v1/jobs/actions/resume", post(commands::resume))
        .route("/v1/jobs/actions/requeue", post(commands::requeue))
        .route("/v1/jobs/actions/signal", post(commands::signal))
        .route("/v1/jobs/actions/modify", post(commands::modify))
        .route("/v1/jobs/actions/tell", post(commands::tell))
        .route("/v1/refusals", post(commands::note_refusal))
        .route("/v1/jobs/forecast", post(plans::forecast))
        .route("/v1/jobs/actions/hold-until", post(described::hold_until))
        .route("/v1/jobs/actions/end", post(described::end))
        .route("/v1/jobs/described", post(described::submit))
        .route("/v1/jobs/all", get(lists::all))
        .route("/v1/jobs/details", get(lists::details))
        .route("/v1/jobs/{id}", get(jobs::show))
        .route("/v1/jobs/{id}/described", put(described::configure))
        .route("/v1/jobs/{id}/enter", post(described::enter))
        .route("/v1/jobs/{id}/description", get(described::description))
        .route("/v1/jobs/{id}/document", get(described::document))
        .route("/v1/jobs/{id}/events", get(jobs::events))
        .route("/v1/jobs/{id}/explanation", get(plans::explanation))
        .route("/v1/jobs/{id}/wait", get(jobs::wait))
        .route("/v1/jobs/{id}/steps", get(steps::of_job))
        .route("/v1/jobs/{id}/steps/launch", post(steps::launch))
        .route("/v1/jobs/{id}/steps/{step}/signal", post(steps::signal))
        .route("/v1/jobs/{id}/steps/{step}/end", post(steps::end))
        .route("/v1/jobs/{id}/steps/{step}/walltime", post(steps::walltime))
        .route("/v1/jobs/{id}/steps/{step}/output", get(steps::output))
        .route("/v1/jobs/{id}/steps/{step}/input", post(steps::input))
        .route("/v1/jobs/{id}/steps/{step}/terminal", post(steps::terminal))
        .route("/v1/jobs/{id}/conclude", post(steps::conclude))
        .route("/v1/jobs/{id}/keep", post(steps::keep))
        .route("/v1/jobs/{id}/shrink", post(commands::shrink))
        .route("/v1/jobs/{id}/copy_ahead", post(commands::copy_ahead))
        .route("/v1/jobs/{id}/run", post(plans::run))
        .route("/v1/steps", get(steps::running))
        .route("/v1/jobs/{id}/steps/{step}/wait", get(steps::wait_for_step))
        .route("/v1/nodes", get(state::nodes))
        .route("/v1/nodes/{name}", get(state::node))
        .route("/v1/nodes/actions/drain", post(commands::drain))
        .route("/v1/nodes/actions/resume", post(commands::resume_nodes))
        .route("/v1/nodes/actions/power", post(commands::power))
        .route("/v1/nodes/actions/set-closures", post(reservations::set_closures))
        .route("/v1/reservations", get(reservations::list).post(reservations::reserve))
        .route("/v1/crontab", put(crontabs::set))
        .route("/v1/crontabs/{user}", get(crontabs::show))
        .route("/v1/triggers", get(triggers::list).post(triggers::set))
        .route("/v1/triggers/actions/clear", post(triggers::clear))
        .route("/v1/reservations/{name}", put(reservations::change).delete(reservations::remove))
        .route("/v1/statistics", get(state::statistics))
        .route("/v1/accounts", get(accounts::list))
        .route("/v1/accounts/actions/change", post(accounts::change))
        .route("/v1/jobs/actions/change-class", post(accounts::change_class))
        .route("/v1/templates", get(filters::templates))
        .route("/v1/templates/{name}", put(filters::set_template).delete(filters::remove_template))
        .route("/v1/filters", get(filters::filters).put(filters::set_filters))
        .route("/v1/scheduling", get(filters::scheduling).put(filters::set_scheduling))
        .route("/v1/parameters", put(filters::set_parameters))
        .route("/v1/plan", get(plans::plan))
        .route("/v1/plan/accuracy", get(plans::accuracy))
        .route("/v1/queues", get(state::queues))
        .route("/v1/config", get(state::config).put(commands::configure))
        .route("/v1/policy", get(state::policy).put(commands::set_policy))
        .route("/v1/policy/refusals", post(commands::refuse_policy))
        .route("/v1/policy/warnings", post(commands::warn_of_policy))
        .route("/v1/dialects", get(state::dialects))
        .route("/v1/info", get(state::info))
        .route("/v1/ledgers", get(ledgers::list))
        .route("/v1/ledgers/actions/hand-over", post(ledgers::hand_over))
        .route("/v1/usage", get(state::usage))
        .route("/v1/events", get(events::stream))
        .route("/v1/records", get(log::records))
        .route("/v1/audit/verify", get(log::verify))
        .route("/metrics", get(system::metrics))
        .route("/v1/archives/{sum}", get(agents::known_archive).put(agents::archive_piece))
        .layer(middleware::from_fn_with_state(app.clone(), authenticate));
    let agents = Router::new()
        .route("/v1/agent/cluster", get(agents::cluster))
        .route("/v1/agent/pull", post(agents::pull))
        .route("/v1/agent/report", post(agents::report))
        .route("/v1/agent/stage-in/{sum}", get(agents::stage_in))
        .route("/v1/agent/output/{part}", put(agents::output))
        .layer(middleware::from_fn_with_state(app.clone(), agents::authenticate));
    Router::new()
        .route("/healthz", get(system::healthz))
        .route("/openapi.json", get(openapi::openapi_json))
        .merge(known_callers)
        .merge(agents)
        .fallback(no_such_address)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app)
}

async fn no_such_address() -> ApiError {
    ApiError::not_found("there is no such address; /openapi.json has them all")
}

async fn wrong_method() -> Response {
    let body = ErrorBody { code: ErrorCode::Malformed, message: "this address has no such method".to_owned() };
    (StatusCode::METHOD_NOT_ALLOWED, axum::Json(body)).into_response()
}
