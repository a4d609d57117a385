//! Steps whose streams are requested, as the log knows them.

use super::jobs;
use crate::{app::App, error::ApiError, params::MomentParams, steps::KnownStep};
use muster_domain::State;
use muster_schemas::{JobId, RunId, StepId, event::Event};
use std::sync::Arc;

/// A step that was launched.
pub(super) async fn find(app: &App, job: JobId, run: RunId, step: StepId) -> Result<Arc<KnownStep>, ApiError> {
    let known = match app.steps.get(run, step) {
        Some(known) => known,
        None => look_up(app, job, run, step).await?,
    };
    if known.job == job { Ok(known) } else { Err(unknown(job, run, step)) }
}

async fn look_up(app: &App, job: JobId, run: RunId, step: StepId) -> Result<Arc<KnownStep>, ApiError> {
    app.reader.catch_up(None).await?;
    let started = |state: &State| Some(state.run(run)?.steps.get(&step)?.started_sequence);
    let history = match app.reader.projection().read(started) {
        Some(sequence) => app.reader.replay(sequence, 1).await?,
        None => app.reader.job_history(job, None).await?,
    };
    let launch = history.iter().find_map(|record| match &record.event {
        Event::StepLaunched { job: of, run: of_run, step: number, spec, .. }
            if (*of, *of_run, *number) == (job, run, step) =>
        {
            Some(spec.clone())
        }
        _ => None,
    });
    let spec = launch.ok_or_else(|| unknown(job, run, step))?;
    let owner = jobs::find(app, MomentParams::default(), job).await?.view.owner;
    let known = Arc::new(KnownStep { job, owner, spec });
    app.steps.remember(run, step, known.clone());
    Ok(known)
}

fn unknown(job: JobId, run: RunId, step: StepId) -> ApiError {
    ApiError::not_found(format!("run {run} of job {job} has no step {step} with streams"))
}
