//! Chains of filters, templates, and holds until a time.

pub(super) mod calls;
pub(super) mod consequences;
pub(super) mod entry;
mod holds;
mod settings;
pub(super) mod staging;
pub(super) mod verdicts;

use super::{Decision, access::Access, control, invalid};
use crate::state::State;
use muster_schemas::{
    JobId, Timestamp,
    command::{Command, Refusal, Reply},
    event::Event,
    filter::JobWarning,
};
use std::sync::Arc;

pub(super) fn decide(access: &Access, command: Command, now: Timestamp) -> Result<Decision, Refusal> {
    match command {
        Command::SubmitDocument { spec, intake } => entry::submit_document(access, *spec, *intake, now),
        Command::ConfigureJob { job, made_from, spec, intake } => {
            entry::configure(access, (job, made_from), *spec, *intake, now)
        }
        Command::EnterJob { job } => entry::enter(access, job, now),
        Command::HoldUntil { jobs, until } => holds::hold_until(access, &jobs, until, now),
        Command::EndJobs { jobs, ending } => control::end(access, &jobs, &ending),
        Command::SetParameters { filters, scheduling } => settings::set_parameters(access, filters, scheduling),
        Command::SetTemplate { template } => settings::set_template(access, *template),
        Command::RemoveTemplate { name } => settings::remove_template(access, &name),
        Command::ClaimCalls { calls } => calls::claim(access, &calls, now),
        Command::ReportCalls { reports, has_others } => calls::report(access, reports, has_others, now),
        Command::RunnersMissing { since } => calls::runners_missing(access, since),
        Command::CallsLost { calls } => calls::lost(access, &calls, now),
        Command::PlannerHello => planner_hello(access),
        _ => Err(invalid("this is no command about filters")),
    }
}

/// The effect of time on a job's hold, and on a call that a runner has.
pub(super) fn due(state: &State, id: JobId, now: Timestamp) -> Vec<Event> {
    let Some(filtering) = state.job(id).and_then(|job| job.filtering.as_deref()) else { return Vec::new() };
    let is_over = filtering.hold.is_some_and(|(until, _)| until <= now);
    let mut events = if is_over { vec![Event::JobHoldEnded { job: id, is_over }] } else { Vec::new() };
    events.extend(calls::silent(state, id, now));
    events
}

/// A planner begins its work (HPC-F-89).
fn planner_hello(access: &Access) -> Result<Decision, Refusal> {
    access.require_planner()?;
    let epoch = access.state.planner_epoch() + 1;
    Ok(Decision { events: vec![Event::PlannerStarted { epoch }], reply: Reply::Epoch(epoch) })
}

/// What people should know of a job.
fn warned(job: JobId, warnings: Vec<JobWarning>) -> impl Iterator<Item = Event> {
    warnings.into_iter().map(move |warning| Event::JobWarned { job, warning: Arc::new(warning) })
}
