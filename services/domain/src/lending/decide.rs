//! Suspend and resume.

use crate::{
    decide::{Access, Decision, conflict, one_if},
    jobs::{
        Job,
        decide::select::{act_on, started_run},
    },
    runs::{Run, Suspension},
    state::State,
};
use muster_schemas::{
    JobId, RunId, Sequence,
    command::{JobSelection, Refusal},
    event::{Event, StopReason},
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

impl Job {
    /// Whether others may use its cores while it is suspended. A list of tasks keeps its cores: its book assigns them to
    /// its tasks. Cores of a planning domain stay in it.
    pub(crate) fn lends_cores(&self) -> bool {
        self.tasks.is_none() && self.opens_domain().is_none() && self.domain().is_none()
    }
}

fn suspended(run: &Run, lends_cores: bool, makes_way_for: Option<JobId>) -> Event {
    let was_resuming =
        matches!(run.suspension, Suspension::Resuming(_) | Suspension::MadeWay { .. } | Suspension::Returning(_));
    Event::JobSuspended { job: run.job, run: run.id, lends_cores, was_resuming, makes_way_for }
}

impl State {
    /// Whether a running job that makes way because of its class is suspended, and lends its cores meanwhile.
    pub fn is_suspended_if_preempted(&self, job: &Job) -> bool {
        self.accounts().suspends_preempted(job) && job.lends_cores()
    }
}

/// A run makes way by lending its cores. One that has lent them already has nothing more to give.
///
/// # Errors
/// If it has not started: there is nothing to suspend yet.
pub(crate) fn make_way(run: &Run, for_job: JobId) -> Result<Vec<Event>, String> {
    if run.started.is_none() {
        return Err(format!("job {} has not started yet, and cannot be suspended", run.job));
    }
    Ok(one_if(!run.lends(), || suspended(run, true, Some(for_job))))
}

/// Runs that made way want their cores back once the job that they made way for has them, waits no more, or did not
/// start although nothing else is on its way to it; they continue with a plan that leaves them their cores. A plan counts
/// only if it was made after the run had changed, so that jobs which preempt it had their turn.
///
/// Neither happens to runs that the plan itself suspends or stops. `gets` are the jobs that it starts.
pub(crate) fn returning(
    state: &State,
    seen: Sequence,
    changed: &BTreeSet<RunId>,
    gets: &BTreeSet<JobId>,
) -> Vec<Event> {
    let is_coming = || state.runs().any(|run| run.stopping == Some(StopReason::Preempted));
    let has_it = |job: JobId| {
        gets.contains(&job)
            || gets.range(JobId::task(job.number, 0)..=JobId::task(job.number, u32::MAX)).next().is_some()
    };
    let waits = |job: JobId| state.job(job).is_some_and(Job::is_waiting) && !has_it(job);
    let back = |run: &Run| match run.suspension {
        Suspension::MadeWay { for_job, since } if since <= seen && !(waits(for_job) && is_coming()) => {
            Some(Event::JobResuming { job: run.job, run: run.id })
        }
        Suspension::Returning(asked) if asked <= seen && state.can_go_on(run, &BTreeSet::new()) => Some(goes_on(run)),
        _ => None,
    };
    state.made_way().filter(|run| !changed.contains(&run.id)).filter_map(back).collect()
}

/// Suspended runs that waited for their cores continue, and kept resources that runs wait for are released.
pub(crate) fn going_on(state: &State) -> impl Iterator<Item = Event> {
    let released = state.kept_in_the_way().map(|(job, run)| Event::ResourcesReleased { job, run });
    state.ready_to_go_on().map(goes_on).chain(released)
}

fn goes_on(run: &Run) -> Event {
    Event::JobResumed { job: run.job, run: run.id }
}
