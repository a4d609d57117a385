//! What plans decide about jobs with a fixed start.

use crate::{
    decide::conflict,
    jobs::{Job, decide::endings::given_up},
    state::State,
};
use muster_schemas::{
    JobId, Timestamp,
    command::Refusal,
    event::{Event, JobChange, WaitingJob},
    job::{Outcome, WaitReason},
};
use std::{collections::BTreeMap, sync::Arc};

/// The code of a job that cannot have the resources that it asks for at its time.
const NOT_AVAILABLE: &str = "[NotAvailable]";

/// The ends of the jobs to which a plan cannot promise their start, and which no plan has promised it before.
pub(crate) fn refused(state: &State, reasons: &[WaitingJob]) -> BTreeMap<JobId, Event> {
    let refused = reasons.iter().filter_map(|told| {
        let job = state.job(told.job).filter(|job| job.is_waiting() && job.gates_open() && job.slot.is_none())?;
        job.fixed_time()?;
        let WaitReason::NeverFits(why) = &told.reason else { return None };
        Some((job.id, given_up(job, Outcome::Refused(format!("{NOT_AVAILABLE} {why}")))))
    });
    refused.collect()
}

/// The shorter walltime of a job that starts late.
pub(crate) fn shortened(job: &Job, now: Timestamp) -> Option<Event> {
    let time = job.fixed_time()?;
    let left = time.seconds_left(now);
    // With the begin its end stays what it is, also if it starts once more.
    let change = JobChange { begin: Some(now), walltime_seconds: Some(left), ..JobChange::default() };
    (left < time.seconds_left(time.start)).then(|| Event::JobModified { job: job.id, change: Arc::new(change) })
}

/// Whether a plan may start a job by its time.
pub(crate) fn check_start(job: &Job, now: Timestamp) -> Result<(), String> {
    match job.fixed_time() {
        Some(time) if now < time.start => Err(format!("its start is fixed: it starts at {}", time.start)),
        Some(time) if now >= time.end => Err("its time has passed".into()),
        _ => Ok(()),
    }
}

/// Refuses changes of what a waiting job with a fixed start was promised, or asked to be promised.
pub(crate) fn require_kept(job: &Job, change: &JobChange) -> Result<(), Refusal> {
    if job.fixed_time().is_none() {
        return Ok(());
    }
    let touches = change.begin.is_some()
        || change.deadline.is_some()
        || change.walltime_seconds.is_some()
        || change.alternatives.is_some()
        || change.queue.is_some()
        || change.reservation.is_some();
    match touches {
        true => Err(conflict(format!("job {} has a fixed start: its time and its request stay as they are", job.id))),
        false => Ok(()),
    }
}
