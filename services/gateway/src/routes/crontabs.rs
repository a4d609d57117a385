//! Tables of jobs that are repeated at certain times.

use crate::{
    app::{Answered, App, Asked, Caller},
    body::Json,
    error::ApiError,
    params::{At, MomentParams, NoParams, Path},
};
use axum::extract::State;
use muster_domain::crontabs::Crontab;
use muster_schemas::{
    command::{Command, RefusalCode},
    crontab::{CronJob, CrontabRequest, CrontabView},
    views::{CommandAnswer, ErrorBody},
};

/// Get the table of a user
///
/// Operators get those of everybody, others their own.
#[utoipa::path(operation_id = "get_crontab",
    get, path = "/v1/crontabs/{user}", tag = "jobs",
    params(MomentParams, ("user" = String, Path, description = "The login name of the user.")),
    responses((status = 200, body = CrontabView), (status = "default", body = ErrorBody)))]
pub(crate) async fn show(
    State(app): State<App>,
    Caller(caller): Caller,
    Path(user): Path<String>,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<CrontabView>, ApiError> {
    if caller.user != user && !app.is_operator(&caller) {
        return Err(ApiError::new(RefusalCode::PermissionDenied.into(), "only operators may see the tables of others"));
    }
    let view = app.reader.read(moment, |state| {
        let table = state.crontab(&user);
        let jobs = table.map(|table| &table.jobs[..]).unwrap_or_default().iter();
        Ok(CrontabView {
            text: table.map(|table| table.text.to_string()),
            jobs: jobs.map(|job| CronJob { job: job.job, lines: (*job.lines).clone() }).collect(),
            disabled: table.map(Crontab::disabled).unwrap_or_default(),
            sequence: state.sequence(),
            user: user.clone(),
        })
    });
    view.await.map(axum::Json)
}

/// Set the table of the caller
///
/// Its jobs are submitted in place of those of the present table: of these, jobs that wait are cancelled, and jobs that run are
/// not repeated any more.
#[utoipa::path(operation_id = "set_crontab",
    put, path = "/v1/crontab", tag = "jobs", request_body = CrontabRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn set(State(app): State<App>, asked: Asked, Json(request): Json<CrontabRequest>) -> Answered {
    let CrontabRequest { text, entries, user } = request;
    app.jobs_command(asked, Command::SetCrontab { text, entries, user }).await
}
