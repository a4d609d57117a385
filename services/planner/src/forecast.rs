//! When a job would start that is not submitted: it is decided and planned with on a copy, forward in time, as
//! [`crate::predict`] does it with jobs that wait.

use crate::{explain::nodes_of, predict::Forward, projection::Projection};
use muster_domain::decide;
use muster_schemas::{
    CommandId, JobId, Timestamp,
    command::{Command, Refusal, RefusalCode},
    event::{Actor, Event, Owner, Record, TraceContext},
    job::{Dependencies, Holds, JobSpec},
    resources::Placement,
    views::Forecast,
};
use std::sync::Arc;

/// At most so many cycles are looked ahead.
const MAX_CYCLES: u32 = 10_000;

/// When and where a job of this owner would start if it were submitted at `now`, and nothing else came. What holds it and
/// what it depends on does not count, and filters are not asked; before its begin time it does not start.
///
/// # Errors
/// It would not be accepted.
pub fn foresee(known: &Projection, owner: &Owner, spec: JobSpec, now: Timestamp) -> Result<Forecast, Refusal> {
    let mut projection = known.clone();
    let actor = Arc::new(Actor::User(owner.clone()));
    let decision = decide(projection.state(), &actor, &Command::Submit { jobs: vec![spec] }, now)?;
    let submitted = decision.events.into_iter().find_map(|event| match event {
        Event::JobSubmitted { job, owner, spec } => Some((job, owner, Arc::unwrap_or_clone(spec))),
        _ => None,
    });
    let nothing = || Refusal::new(RefusalCode::Invalid, "no job would be submitted");
    let (job, owner, mut spec) = submitted.ok_or_else(nothing)?;
    let begin = spec.components.iter().filter_map(|component| component.begin).max().unwrap_or(now);
    for component in &mut spec.components {
        component.begin = None;
        component.holds = Holds::default();
        component.dependencies = Dependencies::default();
    }
    let queue = spec.components.first().and_then(|lead| lead.queue.clone()).unwrap_or_default();
    let sequence = projection.state().sequence();
    projection.apply(&Record {
        sequence: sequence.next(),
        time: now,
        actor,
        command: CommandId::derived(&[b"forecast"]),
        trace: TraceContext::default(),
        event: Event::JobSubmitted { job, owner, spec: Arc::new(spec) },
    });
    let start = first_start(&projection, job, now, begin);
    let shares = |placement: &Placement| nodes_of(projection.state(), placement);
    let shares = start.as_ref().map(|(_, placement)| shares(placement)).unwrap_or_default();
    Ok(Forecast {
        job,
        start: start.map(|(at, _)| at),
        cores: shares.iter().map(|share| share.cores).sum(),
        nodes: shares.into_iter().map(|share| share.node).collect(),
        queue,
        sequence,
    })
}

/// When and where a waiting job starts, of an array its next task. `None` if that cannot be foreseen: a limit holds it for
/// ever, it fits nowhere, or a run without walltime is in its way.
fn first_start(
    projection: &Projection,
    job: JobId,
    now: Timestamp,
    not_before: Timestamp,
) -> Option<(Timestamp, Placement)> {
    let waiting = projection.engine().waiting_job(job)?;
    let mut engine = projection.engine().clone();
    engine.set_capacity_freed(projection.state().capacity_freed());
    let mut forward = Forward::of(&engine, now);
    if not_before > now {
        forward.engine.dequeue(job);
        forward.go_to(not_before, MAX_CYCLES);
        forward.engine.enqueue(waiting);
    }
    forward.watch(job);
    for _ in 0..MAX_CYCLES {
        let goes_on = forward.cycle();
        if forward.watched.is_some() || !goes_on {
            break;
        }
    }
    forward.watched
}
