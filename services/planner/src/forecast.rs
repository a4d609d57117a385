//! When a job that is not submitted would start: it is decided and planned with on a copy, forward in time, as
//! [`crate::predict`] does with waiting jobs.

use crate::{
    explain::nodes_of,
    model::{NodeLoads, QueuedJob},
    predict::{Effort, Forward},
    projection::Projection,
};
use muster_domain::{State, decide, jobs::Job};
use muster_schemas::{
    CommandId, JobId, Timestamp,
    command::{Command, Refusal, RefusalCode},
    event::{Actor, Event, Owner, Record, TraceContext},
    job::{Dependencies, Holds, JobSpec},
    resources::Placement,
    views::Forecast,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The simulation runs for as many cycles as look at this many jobs in all.
const MOST_LOOKS: u32 = 5_000_000;

/// When and where a job of this owner would start if it were submitted at `now` and nothing else arrived. Holds and
/// dependencies do not count, filters are not asked, and its files are there at once; it does not start before its
/// begin time and that of its reservations.
///
/// # Errors
/// It would not be accepted.
pub fn foresee(known: &Projection, owner: &Owner, spec: JobSpec, now: Timestamp) -> Result<Forecast, Refusal> {
    let effort = Effort::of_looks(MOST_LOOKS, known.waiting());
    foresee_within(known, owner, spec, now, effort)
}

/// The same, with a limit to how far it looks ahead.
///
/// # Errors
/// It would not be accepted.
pub fn foresee_within(
    known: &Projection,
    owner: &Owner,
    spec: JobSpec,
    now: Timestamp,
    effort: Effort,
) -> Result<Forecast, Refusal> {
    let mut projection = known.clone();
    let actor = Arc::new(Actor::User(owner.clone()));
    let decision = decide(projection.state(), &actor, &Command::Submit { jobs: vec![spec] }, now)?;
    let submitted = decision.events.into_iter().find_map(|event| match event {
        Event::JobSubmitted { job, owner, spec, intake: None } => Some((job, owner, Arc::unwrap_or_clone(spec))),
        _ => None,
    });
    let nothing = || Refusal::new(RefusalCode::Invalid, "no job would be submitted");
    let (job, owner, mut spec) = submitted.ok_or_else(nothing)?;
    let begin = spec.components.iter().filter_map(|component| component.begin).max().unwrap_or(now);
    let queue = spec.components.first().and_then(|lead| lead.queue.clone()).unwrap_or_default();
    let sequence = projection.state().sequence();
    open_gates(&mut spec);
    assume(&mut projection, &actor, now, Event::JobSubmitted { job, owner, spec: Arc::new(spec), intake: None });
    let mut arrivals = waiting_for_reservations(projection.state(), job);
    arrivals.insert(job, arrivals.get(&job).map_or(begin, |opens| begin.max(*opens)));
    for name in unbegun_reservations(projection.state(), job) {
        assume(&mut projection, &actor, now, Event::ReservationBegun { name });
    }
    let start = first_start(&projection, job, now, &arrivals, effort);
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

/// Opens all gates: only its place in the queue keeps the job waiting.
fn open_gates(spec: &mut JobSpec) {
    for component in &mut spec.components {
        component.begin = None;
        component.holds = Holds::default();
        component.dependencies = Dependencies::default();
    }
    spec.staging.clear();
}

/// Continues as if an event had been recorded.
fn assume(projection: &mut Projection, actor: &Arc<Actor>, now: Timestamp, event: Event) {
    // Whatever it is, this world is only thought of.
    let _ = projection.apply(&Record {
        sequence: projection.state().sequence().next(),
        time: now,
        actor: actor.clone(),
        command: CommandId::derived(&[b"forecast"]),
        trace: TraceContext::default(),
        event,
        epoch: 0,
    });
}

/// The reservations that a job names and that have not begun.
fn unbegun_reservations(state: &State, job: JobId) -> BTreeSet<String> {
    let named = state.job(job).into_iter().flat_map(Job::reservations);
    let is_unbegun = |name: &&Arc<str>| state.reservation(name).is_some_and(|one| !one.begun && !one.spec.is_flexible);
    named.filter(is_unbegun).map(|name| name.to_string()).collect()
}

/// For each job that waits for one of the same reservations: when it enters the queue, once all of its own have begun.
fn waiting_for_reservations(state: &State, job: JobId) -> BTreeMap<JobId, Timestamp> {
    let awaited = unbegun_reservations(state, job);
    if awaited.is_empty() {
        return BTreeMap::new();
    }
    let waits = |other: &&Job| other.is_waiting() && other.reservations().any(|name| awaited.contains(&**name));
    let opens = |other: &Job| {
        let starts = other.reservations().filter_map(|name| Some(state.reservation(name)?.spec.start));
        Some((other.id, starts.max()?))
    };
    state.jobs().filter(waits).filter_map(opens).collect()
}

/// When and where a waiting job, or the next task of an array, starts if these jobs enter the queue then. `None` if
/// that cannot be foreseen: a limit holds it for ever, it fits nowhere, a run without walltime is in its way, or it is
/// too far ahead.
fn first_start(
    projection: &Projection,
    job: JobId,
    now: Timestamp,
    arrivals: &BTreeMap<JobId, Timestamp>,
    effort: Effort,
) -> Option<(Timestamp, Placement)> {
    let mut engine = projection.engine().clone();
    engine.set_capacity_freed(projection.state().capacity_freed());
    engine.set_user_usage(projection.state().share_use(now));
    engine.set_loads(NodeLoads::of(projection.state()));
    engine.set_window_use(projection.state().window_use(now));
    let later = arrivals.iter().filter(|(_, at)| **at > now);
    let mut later: Vec<(Timestamp, QueuedJob)> =
        later.filter_map(|(job, at)| Some((*at, engine.waiting_job(*job)?))).collect();
    later.sort_by_key(|(at, job)| (*at, job.id));
    engine.waiting_job(job)?;
    later.iter().for_each(|(_, job)| engine.dequeue(job.id));
    let mut forward = Forward::of(&engine, now);
    forward.watch(job);
    let mut cycles_left = effort.max_cycles;
    for (at, job) in later {
        forward.go_to(at, &mut cycles_left);
        forward.engine.enqueue(job);
    }
    for _ in 0..cycles_left {
        let goes_on = forward.cycle();
        if forward.watched.is_some() || !goes_on {
            break;
        }
    }
    forward.watched
}
