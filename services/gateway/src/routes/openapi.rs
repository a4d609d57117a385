//! The OpenAPI document of the API.

use super::{
    accounts, agents, commands, crontabs, described, document::Complete, events, filters, jobs, ledgers, lists, log,
    plans, reservations, state, steps, system, triggers,
};
use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use std::sync::OnceLock;
use utoipa::OpenApi as _;

/// The OpenAPI 3.1 document of the API.
pub fn openapi() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

#[derive(utoipa::OpenApi)]
#[openapi(
    modifiers(&Complete),
    info(
        title = "muster",
        version = "v1",
        description = "The API of a muster cluster. On the gateway's Unix socket the kernel says who calls; over TCP \
                       callers show a token (`Authorization: Bearer TOKEN`). A command that is repeated with the same \
                       `Idempotency-Key` gets the first answer and has no second effect. Every query sees what was \
                       answered before it; `at` or `at_seq` shows a past moment.",
        license(name = "Apache-2.0"),
        contact()
    ),
    paths(
        commands::submit,
        commands::cancel,
        commands::hold,
        commands::release,
        commands::suspend,
        commands::resume,
        commands::requeue,
        commands::signal,
        commands::modify,
        commands::tell,
        commands::shrink,
        commands::copy_ahead,
        plans::run,
        commands::note_refusal,
        commands::drain,
        commands::resume_nodes,
        commands::power,
        commands::configure,
        commands::set_policy,
        commands::refuse_policy,
        commands::warn_of_policy,
        described::submit,
        described::configure,
        described::enter,
        described::hold_until,
        described::end,
        described::description,
        described::document,
        filters::templates,
        filters::set_template,
        filters::remove_template,
        filters::filters,
        filters::set_filters,
        filters::scheduling,
        filters::set_scheduling,
        filters::set_parameters,
        reservations::reserve,
        reservations::change,
        reservations::remove,
        reservations::set_closures,
        accounts::list,
        accounts::change,
        accounts::change_class,
        jobs::list_jobs,
        lists::all,
        lists::details,
        jobs::show,
        jobs::events,
        jobs::wait,
        plans::explanation,
        plans::plan,
        plans::accuracy,
        plans::forecast,
        steps::wait_for_step,
        steps::launch,
        steps::of_job,
        steps::running,
        steps::signal,
        steps::end,
        steps::walltime,
        steps::output,
        steps::input,
        steps::terminal,
        steps::conclude,
        steps::keep,
        state::nodes,
        state::node,
        state::queues,
        reservations::list,
        crontabs::set,
        crontabs::show,
        triggers::list,
        triggers::set,
        triggers::clear,
        state::config,
        state::policy,
        state::dialects,
        state::info,
        state::usage,
        state::statistics,
        ledgers::list,
        ledgers::hand_over,
        events::stream,
        log::records,
        log::verify,
        system::metrics,
        system::healthz,
        agents::cluster,
        agents::pull,
        agents::report,
        agents::stage_in,
        agents::output,
        agents::known_archive,
        agents::archive_piece,
        openapi_json,
    )
)]
struct Document;

/// Show this document
#[utoipa::path(get, path = "/openapi.json", tag = "system",
    responses((status = 200, content_type = "application/json", body = Object)))]
pub(crate) async fn openapi_json() -> Response {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    let json = DOCUMENT.get_or_init(|| openapi().to_json().unwrap_or_default());
    ([(header::CONTENT_TYPE, "application/json")], json.as_str()).into_response()
}
