//! Holds until a time (HPC-H-03..08).

use crate::{
    decide::{Access, Decision, conflict, invalid},
    jobs::decide::select::{Target, act_on, not_alone},
};
use muster_schemas::{
    Timestamp,
    command::{JobSelection, Refusal},
    event::{Actor, Event, HoldBy},
    filter::FilterHold,
};

/// Holds jobs until a time, or clears such holds.
pub(crate) fn hold_until(
    access: &Access,
    jobs: &JobSelection,
    until: Option<Timestamp>,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    until.map_or(Ok(()), |until| require_bounds(until, now))?;
    act_on(access, jobs, |target| {
        let job = target.job();
        if let Target::Component(..) = target {
            return Err(not_alone(job));
        }
        let known = job.filters.as_ref().and_then(|filters| filters.hold);
        let Some(until) = until else {
            let cleared = known.filter(|_| !matches!(target, Target::Task(..)));
            return Ok(cleared.map(|_| Event::JobHoldEnded { job: job.id, is_over: false }).into_iter().collect());
        };
        if let Target::Task(array, index) = target {
            return Err(conflict(format!("task {index} of array {} has not started; hold the whole array", array.id)));
        }
        if !job.is_waiting() {
            return Err(conflict(format!("[HoldWrongState] job {} no longer waits", job.id)));
        }
        let is_own = matches!(access.actor, Actor::User(owner) if owner.user == job.owner.user);
        let by = if is_own { HoldBy::User } else { HoldBy::Administrator };
        let is_news = known != Some((until, by));
        Ok(if is_news { vec![Event::JobHeldUntil { job: job.id, until, by }] } else { Vec::new() })
    })
}

/// Whether users may hold a job until this time (HPC-H-07).
pub(crate) fn require_bounds(until: Timestamp, now: Timestamp) -> Result<(), Refusal> {
    if until <= now {
        return Err(invalid(format!("[HoldUntilNotValid] {until} is not in the future")));
    }
    if until > now.one_year_later() {
        return Err(invalid(format!("[HoldUntilTooLong] {until} is more than one year ahead")));
    }
    Ok(())
}

/// Until when a verdict holds a job: the time the filter asks for, or that of the job's hold, if in the future; else
/// the default (HPC-H-03, HPC-H-04).
pub(crate) fn after_verdict(
    asked: Option<FilterHold>,
    known: Option<Timestamp>,
    default_seconds: u32,
    now: Timestamp,
) -> Timestamp {
    let asked = asked.map(|hold| match hold {
        FilterHold::At(time) => time,
        FilterHold::Seconds(seconds) => now.plus_seconds(seconds),
    });
    let is_ahead = |time: &Timestamp| *time > now;
    asked
        .filter(is_ahead)
        .or_else(|| known.filter(is_ahead))
        .unwrap_or_else(|| now.plus_seconds(i64::from(default_seconds)))
}
