//! The users who may ask for more walltime, and how much is granted.

use super::room::Growing;
use crate::{
    decide::{Access, conflict, invalid, refuse},
    jobs::{Job, decide::queues},
    state::State,
    validate,
};
use muster_schemas::{
    Timestamp,
    command::{Refusal, RefusalCode},
    event::{Event, JobChange},
    walltimes::{WalltimeIncrease, WalltimeIncreases},
};
use std::sync::Arc;

/// Requires that a change with an increase changes nothing else.
pub(crate) fn require_alone(change: &JobChange) -> Result<(), Refusal> {
    let alone = JobChange { increase: change.increase, ..JobChange::default() };
    if *change == alone { Ok(()) } else { Err(invalid("increase: comes without other changes")) }
}

/// Requires that a change of a waiting job has no increase.
pub(crate) fn require_running(job: &Job, change: &JobChange) -> Result<(), Refusal> {
    match change.increase {
        Some(_) => Err(conflict(format!("job {} is not running: change its walltime", job.id))),
        None => Ok(()),
    }
}

/// Somebody asks for more walltime for a job. As much as can be is granted at once.
pub(crate) fn ask(
    access: &Access,
    job: &Job,
    asked: &WalltimeIncrease,
    now: Timestamp,
) -> Result<Vec<JobChange>, Refusal> {
    let state = access.state;
    let run = job.run().and_then(|run| state.run(run));
    let not_running = || conflict(format!("job {} does not run, or has no walltime that can grow", job.id));
    let growing = run.and_then(|run| state.growing(run)).ok_or_else(not_running)?;
    require_allowed(access, &growing, asked)?;
    let known = state.walltime_asked(growing.run.id).map(|known| known.pending).unwrap_or_default();
    if asked.seconds == 0 && known.seconds == 0 {
        return Ok(Vec::new());
    }
    let first = JobChange { increase: Some(*asked), ..JobChange::default() };
    Ok(std::iter::once(first).chain(grant(state, &growing, asked, now)).collect())
}

/// The part of pending increases that is granted by now. Each run is looked at by itself: those that share a node wait for nobody.
pub(crate) fn due(state: &State, now: Timestamp) -> impl Iterator<Item = Event> {
    state.pending_walltimes().filter_map(move |(growing, pending)| {
        let change = grant(state, &growing, pending, now)?;
        Some(Event::JobModified { job: growing.job.id, change: Arc::new(change) })
    })
}

fn grant(state: &State, growing: &Growing<'_>, asked: &WalltimeIncrease, now: Timestamp) -> Option<JobChange> {
    let granted = Some(state.grantable(growing, asked, now)).filter(|granted| *granted > 0)?;
    let rest = asked.seconds.saturating_sub(granted);
    Some(JobChange {
        walltime_seconds: Some(growing.walltime_seconds.saturating_add(granted)),
        increase: Some(WalltimeIncrease { seconds: rest, ..*asked }),
        ..JobChange::default()
    })
}

/// Operators may ask for anything; owners for what their queue allows.
fn require_allowed(access: &Access, growing: &Growing<'_>, asked: &WalltimeIncrease) -> Result<(), Refusal> {
    let Growing { job, run, walltime_seconds } = growing;
    let after = walltime_seconds.saturating_add(asked.seconds);
    validate::walltime(after)?;
    // It runs only because it ends before the job that it was backfilled around starts (HPC-B-12).
    if job.filters.as_ref().is_some_and(|filters| filters.is_backfill) {
        let message = "was started around a job that waits: its walltime is fixed while it runs";
        return Err(conflict(format!("[BackfillRunTimeFixed] job {} {message}", job.id)));
    }
    if access.is_operator() || asked.seconds == 0 {
        return Ok(());
    }
    let queue = queues::find_queue(access.state, &job.lead().queue)?;
    let name = &queue.spec.name;
    let rule = access.state.increases(job);
    if rule.max_seconds == 0 {
        let message = format!("queue `{name}` lets only operators lengthen the walltimes of running jobs");
        return Err(refuse(RefusalCode::PermissionDenied, message));
    }
    for (is_asked, users, what) in
        [(asked.is_forced, &rule.may_force, "force it"), (asked.may_delay, &rule.may_delay, "delay other jobs by it")]
    {
        if is_asked && !WalltimeIncreases::lists(users, &job.owner.user) {
            let message = format!("who lengthens a walltime in queue `{name}` may not {what}: user {}", job.owner.user);
            return Err(refuse(RefusalCode::PermissionDenied, message));
        }
    }
    if *walltime_seconds < rule.min_walltime_seconds {
        let least = rule.min_walltime_seconds;
        let message = format!("queue `{name}` lengthens walltimes of {least} seconds or more, not {walltime_seconds}");
        return Err(refuse(RefusalCode::LimitReached, message));
    }
    let granted = access.state.walltime_asked(run.id).map_or(0, |known| known.granted_seconds);
    if granted.saturating_add(asked.seconds) > rule.max_seconds {
        let most = rule.max_seconds;
        let message = format!(
            "queue `{name}` lengthens the walltime of a job by at most {most} seconds; it has {granted} more already"
        );
        return Err(refuse(RefusalCode::LimitReached, message));
    }
    queues::require_walltime(queue, Some(after), false)
}
