//! Suspend and resume.

use crate::{
    decide::{Access, Decision, conflict, one_if},
    jobs::decide::select::{act_on, started_run},
    lending::making_way::{goes_on, suspended},
    runs::Suspension,
    state::State,
};
use muster_schemas::{
    command::{JobSelection, Refusal},
    event::Event,
};
use std::collections::BTreeSet;

pub(crate) fn suspend(access: &Access, jobs: &JobSelection) -> Result<Decision, Refusal> {
    access.require_operator("suspend jobs")?;
    act_on(access, jobs, |target| {
        let run = started_run(access.state, target)?;
        // A run that is about to continue is suspended again.
        let is_done = matches!(run.suspension, Suspension::Suspended | Suspension::Lent);
        Ok(one_if(!is_done, || suspended(run, target.job().lends_cores(), None)))
    })
}

pub(crate) fn resume(access: &Access, jobs: &JobSelection) -> Result<Decision, Refusal> {
    access.require_operator("resume jobs")?;
    let mut ahead = BTreeSet::new();
    act_on(access, jobs, |target| {
        let run = started_run(access.state, target)?;
        if !run.is_suspended() {
            return Err(conflict(format!("job {} is not suspended", run.job)));
        }
        let follows = match run.suspension {
            // It is being resumed already.
            Suspension::Resuming(_) | Suspension::Returning(_) => return Ok(Vec::new()),
            Suspension::Lent | Suspension::MadeWay { .. } if !access.state.can_go_on(run, &ahead) => {
                Event::JobResuming { job: run.job, run: run.id }
            }
            _ => goes_on(run),
        };
        ahead.insert(run.id);
        Ok(vec![follows])
    })
}

/// Suspended runs that waited for their cores continue, and kept resources that runs wait for are released.
pub(crate) fn going_on(state: &State) -> impl Iterator<Item = Event> {
    let released = state.kept_in_the_way().map(|(job, run)| Event::ResourcesReleased { job, run });
    state.ready_to_go_on().map(goes_on).chain(released)
}
