//! Timers, and waiting jobs that can never start.

use crate::{
    decide::{Access, Decision},
    filters,
    index::Due,
    jobs::{
        Component, Job,
        decide::{clients, endings::given_up, passing},
    },
    lending, nesting, power, reservations, staging,
    state::State,
    tasks::outlook,
    triggers, walltimes,
};
use muster_schemas::{
    JobId, RunId, Timestamp,
    command::Refusal,
    event::{Event, StopReason},
    job::Outcome,
};
use std::collections::BTreeSet;

/// The greatest number in one decision; the next tick continues.
const MAX_AT_ONCE: usize = 10_000;

pub(crate) fn tick(access: &Access, now: Timestamp) -> Result<Decision, Refusal> {
    access.require_ledger()?;
    let state = access.state;
    let mut events = Vec::new();
    let mut over = BTreeSet::new();
    let mut waiting_tasks = Vec::new();
    for job in state.impossible_jobs().iter().take(MAX_AT_ONCE).filter_map(|id| state.job(*id)) {
        over.insert(job.id);
        events.push(impossible(job));
    }
    for (_, due) in state.index.due.iter().take_while(|(time, _)| *time <= now).take(MAX_AT_ONCE) {
        match due {
            Due::Job(id) if over.contains(id) => {}
            Due::Job(id) => events.extend(job_due(state, *id, now)),
            // Those that have work to do now are found separately.
            Due::Tasks(id) => waiting_tasks.push(*id),
            Due::Filters(id) => events.extend(filters::decide::due(state, *id, now)),
            Due::Run(id) => events.extend(launch_timeout(state, *id)),
        }
    }
    for id in waiting_tasks.into_iter().chain(state.index.tasks_ready.iter().copied()) {
        events.extend(outlook::outlook(state, id, now, MAX_AT_ONCE.saturating_sub(events.len())).events);
    }
    let gone: BTreeSet<JobId> = events.iter().filter_map(ended).collect();
    let is_new = |event: &Event| event.job().is_none_or(|job| !gone.contains(&job));
    events.extend(nesting::decide::due(state, MAX_AT_ONCE).into_iter().filter(is_new));
    let gone: BTreeSet<JobId> = events.iter().filter_map(ended).collect();
    let is_left = |event: &Event| event.job().is_none_or(|job| !gone.contains(&job));
    events.extend(passing::due(state, now, MAX_AT_ONCE).into_iter().filter(is_left));
    events.extend(clients::due(state, now, MAX_AT_ONCE));
    events.extend(lending::decide::going_on(state).take(MAX_AT_ONCE));
    let ended: BTreeSet<JobId> = events.iter().filter_map(ended).collect();
    events.extend(staging::decide::due(state, &ended, MAX_AT_ONCE));
    events.extend(reservations::decide::due(state, now, MAX_AT_ONCE));
    events.extend(triggers::decide::due(state, now).take(MAX_AT_ONCE));
    events.extend(power::decide::due(state, now));
    events.extend(walltimes::decide::due(state, now).take(MAX_AT_ONCE));
    Ok(Decision::done(events))
}

/// The job or array that an event ends, or some of whose tasks it ends.
fn ended(event: &Event) -> Option<JobId> {
    match event {
        Event::JobFinished { job, .. } | Event::TasksFinished { job, .. } => Some(*job),
        _ => None,
    }
}

fn impossible(job: &Job) -> Event {
    match &job.array {
        Some(array) if job.never_met().is_none() => Event::TasksFinished {
            job: job.id,
            indices: array.impossible.clone(),
            outcome: Outcome::DependencyNeverMet,
        },
        _ => given_up(job, Outcome::DependencyNeverMet),
    }
}

fn job_due(state: &State, id: JobId, now: Timestamp) -> Option<Event> {
    let job = state.job(id)?;
    let mut too_late = job.components.iter().filter_map(Component::too_late_at);
    let is_over = job.fixed_time().is_some_and(|time| time.end <= now);
    Some(if is_over || too_late.any(|moment| moment <= now) {
        given_up(job, Outcome::DeadlineMissed)
    } else {
        Event::JobEligible { job: id }
    })
}

fn launch_timeout(state: &State, id: RunId) -> Option<Event> {
    let run = state.run(id)?;
    Some(Event::RunStopping { job: run.job, run: run.id, reason: StopReason::LaunchTimeout, grace_seconds: None })
}
