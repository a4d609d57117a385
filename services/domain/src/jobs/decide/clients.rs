//! Jobs that hold resources for a client, which reports how they end and that it is alive.

use crate::{
    decide::{Access, Decision, conflict, invalid, not_found},
    jobs::{Job, Phase, ProgramKind, decide::endings},
    state::State,
};
use muster_schemas::{
    JobId, Timestamp,
    command::{JobEnding, Refusal},
    event::{Actor, Event, StopReason},
    job::{ExitStatus, Outcome},
    views::RefusalNote,
};

/// The range of a client's reporting interval, in seconds.
const KEEP_SECONDS: std::ops::RangeInclusive<u32> = 10..=86_400;

/// The client is done: a running job ends with its status, a waiting one is cancelled (SL-I-12, SL-C-21).
pub(crate) fn conclude(access: &Access, id: JobId, status: ExitStatus) -> Result<Decision, Refusal> {
    let job = own_job(access, id)?;
    if job.lead().program != ProgramKind::None {
        return Err(conflict(format!("job {id} has its own program, which determines its end")));
    }
    let events = match &job.phase {
        Phase::Active(run) => {
            let run = access.state.run(*run).filter(|run| run.stopping.is_none());
            let reason = StopReason::Concluded(status);
            run.map(|run| Event::RunStopping { job: id, run: run.id, reason, grace_seconds: None })
                .into_iter()
                .collect()
        }
        Phase::Waiting => endings::end_job(access.state, job, &JobEnding::default(), Outcome::Cancelled)?,
        _ => return Err(conflict(format!("job {id} is over"))),
    };
    Ok(Decision::done(events))
}

/// The client is alive, or no longer has to report.
pub(crate) fn keep(access: &Access, id: JobId, seconds: Option<u32>) -> Result<Decision, Refusal> {
    let job = own_job(access, id)?;
    if let Some(seconds) = seconds.filter(|seconds| !KEEP_SECONDS.contains(seconds)) {
        let (least, most) = (KEEP_SECONDS.start(), KEEP_SECONDS.end());
        return Err(invalid(format!("seconds: {seconds} is not between {least} and {most}")));
    }
    if matches!(job.phase, Phase::Finished(_) | Phase::Settling) {
        return Err(conflict(format!("job {id} is over")));
    }
    let is_news = seconds.is_some() || access.state.kept(id).is_some();
    let event = Event::JobKept { job: id, seconds, is_late: false };
    Ok(Decision::done(if is_news { vec![event] } else { Vec::new() }))
}

/// A client itself refused something: nothing changes, and the ledger decides how much of it is recorded.
pub(crate) fn note_refusal(access: &Access, what: &str, why: &str) -> Result<Decision, Refusal> {
    // What an agent did wrong is noted too (OAR-K-11).
    if !matches!(access.actor, Actor::Executor(_)) {
        access.require_user()?;
    }
    for (name, text, most) in [("what", what, RefusalNote::MOST_WHAT_BYTES), ("why", why, RefusalNote::MOST_WHY_BYTES)]
    {
        if text.trim().is_empty() || text.len() > most {
            return Err(invalid(format!("{name}: it has {} bytes, and may have 1 to {most}", text.trim().len())));
        }
    }
    if what.chars().any(char::is_control) {
        return Err(invalid("what: it has control characters".to_owned()));
    }
    Ok(Decision::done(Vec::new()))
}

fn own_job<'a>(access: &Access<'a>, id: JobId) -> Result<&'a Job, Refusal> {
    let job = access.state.job(id).ok_or_else(|| not_found(format!("job {id} does not exist")))?;
    access.require_management(job)?;
    if job.array.is_some() {
        return Err(conflict(format!("job {id} is an array, which has no client of its own")));
    }
    Ok(job)
}

/// Clients that did not report in time. The first time, the report may have found no listener: they get the same time
/// again; then the job is cancelled.
pub(crate) fn due(state: &State, now: Timestamp, most: usize) -> Vec<Event> {
    let late = state.clients.kept.iter().filter(|(_, kept)| kept.until <= now).take(most);
    late.flat_map(|(id, kept)| match kept.is_late {
        true => client_lost(state, *id),
        false => vec![Event::JobKept { job: *id, seconds: Some(kept.seconds), is_late: true }],
    })
    .collect()
}

fn client_lost(state: &State, id: JobId) -> Vec<Event> {
    let mut events = vec![Event::JobKept { job: id, seconds: None, is_late: false }];
    let ended = state.job(id).map(|job| endings::end_job(state, job, &JobEnding::default(), Outcome::Cancelled));
    if let Some(Ok(ended)) = ended {
        events.push(Event::JobMessage { job: id, text: "its client no longer reports".into() });
        events.extend(ended);
    }
    events
}
