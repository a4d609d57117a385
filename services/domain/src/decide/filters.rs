//! Chains of filters, templates, and holds until a time.

mod settings;

use super::{Decision, access::Access, invalid};
use crate::state::State;
use muster_schemas::{
    JobId, Timestamp,
    command::{Command, Refusal, Reply},
    event::Event,
};

pub(super) fn decide(access: &Access, command: Command, _now: Timestamp) -> Result<Decision, Refusal> {
    match command {
        Command::SetFilterSettings { settings } => settings::set(access, *settings),
        Command::SetTemplate { template } => settings::set_template(access, *template),
        Command::RemoveTemplate { name } => settings::remove_template(access, &name),
        Command::PlannerHello => planner_hello(access),
        _ => Err(invalid("not there yet")),
    }
}

/// What time does to a job's hold and to a call that a runner has.
pub(super) fn due(state: &State, id: JobId, now: Timestamp) -> Vec<Event> {
    let filtering = state.job(id).and_then(|job| job.filtering.as_deref());
    let is_over = filtering.and_then(|filtering| filtering.hold).is_some_and(|(until, _)| until <= now);
    if is_over { vec![Event::JobHoldEnded { job: id, is_over }] } else { Vec::new() }
}

/// A planner begins its work (HPC-F-89).
fn planner_hello(access: &Access) -> Result<Decision, Refusal> {
    access.require_planner()?;
    let epoch = access.state.planner_epoch() + 1;
    Ok(Decision { events: vec![Event::PlannerStarted { epoch }], reply: Reply::Epoch(epoch) })
}
