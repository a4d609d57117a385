//! Job templates, filters, and the settings for giving resources to jobs.

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
    filter::{FilterSettings, TemplateSpec},
    scheduling::SchedulingSettings,
    views::{CommandAnswer, ErrorBody, ParametersRequest, TemplatesPage},
};

/// List job templates
#[utoipa::path(get, path = "/v1/templates", tag = "filters", params(MomentParams),
    responses((status = 200, body = TemplatesPage), (status = "default", body = ErrorBody)))]
pub(crate) async fn templates(
    State(app): State<App>,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<TemplatesPage>, ApiError> {
    app.reader.read(moment, |state| Ok(views::templates_page(state))).await.map(axum::Json)
}

/// Make or change a job template
#[utoipa::path(put, path = "/v1/templates/{name}", tag = "filters", request_body = TemplateSpec,
    params(("name" = String, Path, description = "The template; the same as in the body."),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn set_template(
    State(app): State<App>,
    Path(name): Path<String>,
    asked: Asked,
    Json(template): Json<TemplateSpec>,
) -> Answered {
    if name != template.name {
        return Err(ApiError::invalid(format!("the address names `{name}`, the template `{}`", template.name)));
    }
    app.jobs_command(asked, Command::SetTemplate { template: Box::new(template) }).await
}

/// Remove a job template
#[utoipa::path(delete, path = "/v1/templates/{name}", tag = "filters",
    params(("name" = String, Path, description = "The template."),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn remove_template(State(app): State<App>, Path(name): Path<String>, asked: Asked) -> Answered {
    app.jobs_command(asked, Command::RemoveTemplate { name }).await
}

/// Show the cluster-wide filters, and how filters are called
#[utoipa::path(get, path = "/v1/filters", tag = "filters", params(MomentParams),
    responses((status = 200, body = FilterSettings), (status = "default", body = ErrorBody)))]
pub(crate) async fn filters(
    State(app): State<App>,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<FilterSettings>, ApiError> {
    app.reader.read(moment, |state| Ok(FilterSettings::clone(state.filter_settings()))).await.map(axum::Json)
}

/// Set the cluster-wide filters, and how filters are called
#[utoipa::path(put, path = "/v1/filters", tag = "filters", request_body = FilterSettings,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn set_filters(
    State(app): State<App>,
    asked: Asked,
    Json(settings): Json<FilterSettings>,
) -> Answered {
    let answer =
        app.jobs_command(asked, Command::SetParameters { filters: Some(Box::new(settings)), scheduling: None }).await?;
    known_here(&app, answer).await
}

/// The answer, once this gateway knows its subject: whoever submits next is told whether filters judge the job.
async fn known_here(app: &App, answer: axum::Json<CommandAnswer>) -> Answered {
    app.reader.catch_up(Some(answer.sequence)).await?;
    Ok(answer)
}

/// Show how resources are given to jobs
#[utoipa::path(get, path = "/v1/scheduling", tag = "filters", params(MomentParams),
    responses((status = 200, body = SchedulingSettings), (status = "default", body = ErrorBody)))]
pub(crate) async fn scheduling(
    State(app): State<App>,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<SchedulingSettings>, ApiError> {
    app.reader.read(moment, |state| Ok(SchedulingSettings::clone(state.scheduling()))).await.map(axum::Json)
}

/// Set how resources are given to jobs
#[utoipa::path(put, path = "/v1/scheduling", tag = "filters", request_body = SchedulingSettings,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn set_scheduling(
    State(app): State<App>,
    asked: Asked,
    Json(settings): Json<SchedulingSettings>,
) -> Answered {
    app.jobs_command(asked, Command::SetParameters { filters: None, scheduling: Some(Box::new(settings)) }).await
}

/// Set filters and the way resources are given to jobs at once
///
/// Both are set, or neither.
#[utoipa::path(put, path = "/v1/parameters", tag = "filters", request_body = ParametersRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn set_parameters(
    State(app): State<App>,
    asked: Asked,
    Json(ParametersRequest { filters, scheduling }): Json<ParametersRequest>,
) -> Answered {
    let command = Command::SetParameters { filters: Some(Box::new(filters)), scheduling: Some(Box::new(scheduling)) };
    let answer = app.jobs_command(asked, command).await?;
    known_here(&app, answer).await
}
