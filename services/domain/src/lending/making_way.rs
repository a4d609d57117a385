//! Runs that are suspended to make way for waiting jobs, because of their class.

use crate::{
    decide::one_if,
    jobs::Job,
    runs::{Run, Suspension},
    state::State,
};
use muster_schemas::{
    JobId, RunId, Sequence,
    event::{Event, StopReason},
};
use std::collections::BTreeSet;

impl Job {
    /// Whether others may use its cores while it is suspended. A list of tasks keeps its cores: its book assigns them to
    /// its tasks. Cores of a planning domain stay in it.
    pub(crate) fn lends_cores(&self) -> bool {
        self.tasks.is_none() && self.opens_domain().is_none() && self.domain().is_none()
    }
}

/// A run is suspended; its processes are stopped already if it waits to continue.
pub(super) fn suspended(run: &Run, lends_cores: bool, makes_way_for: Option<JobId>) -> Event {
    let was_resuming =
        matches!(run.suspension, Suspension::Resuming(_) | Suspension::MadeWay { .. } | Suspension::Returning(_));
    Event::JobSuspended { job: run.job, run: run.id, lends_cores, was_resuming, makes_way_for }
}

impl State {
    /// Whether a running job that makes way because of its class or queue is suspended, and lends its cores meanwhile.
    pub fn is_suspended_if_preempted(&self, job: &Job) -> bool {
        self.suspends_preempted(job) && job.lends_cores()
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
/// start although nothing else is on its way to it, by this plan neither; they continue with a plan that leaves them their cores. A plan counts
/// only if it was made after the run had changed, so that jobs which preempt it had their turn.
///
/// Neither happens to runs that the plan itself suspends or stops. `gets` are the jobs that it starts, `gains` those for which it
/// has runs make way.
pub(crate) fn returning(
    state: &State,
    seen: Sequence,
    changed: &BTreeSet<RunId>,
    gets: &BTreeSet<JobId>,
    gains: &BTreeSet<JobId>,
) -> Vec<Event> {
    // Runs on the same cores make way one after the other: the first does not continue while the second stops.
    let is_coming =
        |job: JobId| gains.contains(&job) || state.runs().any(|run| run.stopping == Some(StopReason::Preempted));
    let has_it = |job: JobId| {
        gets.contains(&job)
            || gets.range(JobId::task(job.number, 0)..=JobId::task(job.number, u32::MAX)).next().is_some()
    };
    let waits = |job: JobId| state.job(job).is_some_and(Job::is_waiting) && !has_it(job);
    let back = |run: &Run| match run.suspension {
        Suspension::MadeWay { for_job, since } if since <= seen && !(waits(for_job) && is_coming(for_job)) => {
            Some(Event::JobResuming { job: run.job, run: run.id })
        }
        Suspension::Returning(asked) if asked <= seen && state.can_go_on(run, &BTreeSet::new()) => Some(goes_on(run)),
        _ => None,
    };
    state.made_way().filter(|run| !changed.contains(&run.id)).filter_map(back).collect()
}

/// A suspended run continues.
pub(super) fn goes_on(run: &Run) -> Event {
    Event::JobResumed { job: run.job, run: run.id }
}
