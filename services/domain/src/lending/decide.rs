//! Suspend and resume.

use crate::{
    decide::{Access, Decision, conflict, one_if},
    jobs::decide::select::{act_on, started_run},
    lending::making_way::{goes_on, suspended},
    runs::{Run, Suspension},
    state::State,
};
use muster_schemas::{
    PartId, RunId,
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
        let follows = resumed(access.state, run, &ahead);
        if follows.is_some() {
            ahead.insert(run.id);
        }
        Ok(follows.into_iter().collect())
    })
}

/// A suspended run continues at once, or as soon as it has its cores; `None` if that is ordered already.
fn resumed(state: &State, run: &Run, ahead: &BTreeSet<RunId>) -> Option<Event> {
    match run.suspension {
        Suspension::Resuming(_) | Suspension::Returning(_) => None,
        Suspension::Lent | Suspension::MadeWay { .. } if !state.can_go_on(run, ahead) => {
            Some(Event::JobResuming { job: run.job, run: run.id })
        }
        _ => Some(goes_on(run)),
    }
}

/// The most characters of a reason that are shown on a job.
const MAX_WHY_CHARS: usize = 200;

/// What the site does right after a suspension has failed on a node: that is shown on the job, and the job continues (OAR-S-04).
pub(crate) fn unwanted(access: &Access, part: PartId, why: &str) -> Result<Decision, Refusal> {
    let node = access.require_node()?;
    let run = access.state.part_named(node.id, part).map(|(run, _)| run);
    let Some(run) = run.filter(|run| run.is_suspended() && run.stopping.is_none()) else {
        return Ok(Decision::done(Vec::new()));
    };
    let why = why.replace(char::is_control, " ").chars().take(MAX_WHY_CHARS).collect();
    let message = Event::JobMessage { job: run.job, text: why };
    let follows = resumed(access.state, run, &BTreeSet::new());
    Ok(Decision::done([message].into_iter().chain(follows).collect()))
}

/// Suspended runs that waited for their cores continue, and kept resources that runs wait for are released.
pub(crate) fn going_on(state: &State) -> impl Iterator<Item = Event> {
    let released = state.kept_in_the_way().map(|(job, run)| Event::ResourcesReleased { job, run });
    state.ready_to_go_on().map(goes_on).chain(released)
}
