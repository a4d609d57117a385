//! Hold, release, cancel, signal, requeue.

use crate::{
    components,
    decide::{Access, Decision, conflict, invalid, one_if},
    filters::decide::entry,
    fixed,
    jobs::{
        Job, Phase,
        decide::{
            endings::{end_job, judged, tasks_over, word},
            select::{Apart, Target, act_on, not_alone, started_run},
        },
    },
    runs,
    staging::Stage,
    state::State,
    validate,
};
use muster_schemas::{
    JobId, Timestamp,
    command::{JobEnding, JobSelection, Refusal},
    event::{Event, JobChange, StopReason},
    job::{Holds, Outcome},
    resources::IndexSet,
};
use std::sync::Arc;

pub(crate) fn hold(access: &Access, jobs: &JobSelection, holds: Holds, reason: &str) -> Result<Decision, Refusal> {
    require_holds(access, holds)?;
    validate::text("reason", reason)?;
    act_on(access, jobs, |target| {
        // A running job continues; it does not start again once it is requeued (SL-C-37).
        require_unfinished(access.state, target)?;
        fixed::decide::require_answered(target.job())?;
        if let Target::Component(job, component) = target {
            return Ok(components::decide::hold(job, component, holds, reason));
        }
        let added = holds.without(holds_of_all(target));
        Ok(one_if(!added.is_empty(), || Event::JobHeld { job: target.id(), holds: added, reason: reason.to_owned() }))
    })
}

pub(crate) fn release(access: &Access, jobs: &JobSelection, holds: Holds) -> Result<Decision, Refusal> {
    require_holds(access, holds)?;
    let mut apart = Apart::default();
    act_on(access, jobs, |target| {
        require_unfinished(access.state, target)?;
        if !target.job().is_waiting() && holds_of(target).is_empty() {
            return Err(does_not_wait(access.state, target));
        }
        if let Target::Component(job, component) = target {
            return Ok(components::decide::release(job, component, holds));
        }
        if let Target::Task(array, index) = target {
            let of_all = array.holds().without(array.holds().without(holds));
            if !of_all.is_empty() {
                return released_alone(&mut apart, array, index, holds);
            }
        }
        let mut events = released(target.id(), holds, holds_of(target));
        if let Target::Array(array) = target {
            let held = array.array.iter().flat_map(|array| &array.held);
            for (index, task_holds) in held {
                events.extend(released(JobId::task(array.id.number, *index), holds, *task_holds));
            }
        }
        Ok(events)
    })
}

/// Releases one task of an array that is held as a whole: it leaves the array, and waits by itself.
fn released_alone(apart: &mut Apart, array: &Job, index: u32, holds: Holds) -> Result<Vec<Event>, Refusal> {
    let task = apart.take(array, index)?;
    let apart = JobChange { priority: Some(task.lead().priority), ..JobChange::default() };
    let set = array.holds().union(holds_of(Target::Task(array, index)));
    let leaves = Event::JobModified { job: task.id, change: Arc::new(apart) };
    Ok([leaves].into_iter().chain(released(task.id, holds, set)).collect())
}

fn released(job: JobId, wanted: Holds, set: Holds) -> Vec<Event> {
    let taken = set.without(set.without(wanted));
    one_if(!taken.is_empty(), || Event::JobReleased { job, holds: taken })
}

/// Users manage `user` holds of their jobs, operators `operator` holds, administrators `system` holds.
fn require_holds(access: &Access, holds: Holds) -> Result<(), Refusal> {
    if holds.is_empty() {
        return Err(invalid("holds: none is named; give user, operator or system"));
    }
    if holds.operator {
        access.require_operator("set and release operator holds")?;
    }
    if holds.system {
        access.require_administrator("set and release system holds")?;
    }
    Ok(())
}

fn holds_of(target: Target) -> Holds {
    match target {
        Target::Component(job, component) => job.components[component as usize].holds,
        Target::Job(job) | Target::Array(job) => job.holds(),
        Target::Task(job, index) => {
            job.array.as_ref().and_then(|array| array.held.get(&index).copied()).unwrap_or_default()
        }
    }
}

/// The holds that all parts of a target have: a hold on the whole holds each component (SL-M-11).
fn holds_of_all(target: Target) -> Holds {
    match target {
        Target::Job(job) | Target::Array(job) => job.components.iter().fold(job.holds(), |all, component| {
            let missing = all.without(component.holds);
            all.without(missing)
        }),
        Target::Task(..) | Target::Component(..) => holds_of(target),
    }
}

fn require_unfinished(state: &State, target: Target) -> Result<(), Refusal> {
    match target.job().phase {
        Phase::Finished(_) => Err(does_not_wait(state, target)),
        Phase::Waiting | Phase::Active(_) | Phase::Settling => Ok(()),
    }
}

fn does_not_wait(state: &State, target: Target) -> Refusal {
    let job = target.job();
    conflict(format!("job {} does not wait, it is {}", job.id, word(state, job)))
}

pub(crate) fn cancel(access: &Access, jobs: &JobSelection) -> Result<Decision, Refusal> {
    end(access, jobs, &JobEnding::default())
}

/// The greatest length of a message about the end of a job (HPC-J-27).
const MAX_MESSAGE_CHARS: usize = 128;
/// The longest time from SIGTERM to SIGKILL, as for jobs that name theirs.
const MAX_GRACE_SECONDS: u64 = 86_400;

/// Ends jobs: waiting ones at once, or as soon as the filter that judges them has answered; running ones are stopped
/// first (HPC-C-06).
pub(crate) fn end(access: &Access, jobs: &JobSelection, ending: &JobEnding) -> Result<Decision, Refusal> {
    validate::label("message", &ending.message)?;
    let chars = ending.message.chars().count();
    if chars > MAX_MESSAGE_CHARS {
        return Err(invalid(format!("message: {chars} characters, at most {MAX_MESSAGE_CHARS} are allowed")));
    }
    if let Some(seconds) = ending.grace_seconds {
        validate::number("grace_seconds", u64::from(seconds), 0, MAX_GRACE_SECONDS)?;
        if ending.is_forced {
            return Err(invalid("grace_seconds: a job that ends by force has none"));
        }
    }
    let outcome = if ending.is_finished { Outcome::DeclaredFinished } else { Outcome::Cancelled };
    act_on(access, jobs, |target| {
        let mut events = match target {
            Target::Job(job) => end_job(access.state, job, ending, outcome.clone()),
            Target::Component(job, component) => components::decide::end(access.state, job, component, ending),
            Target::Task(array, index) => Ok(vec![tasks_over(array, IndexSet::from_range(index, index), &outcome)]),
            Target::Array(job) => match &job.array {
                Some(array) if !array.remaining.is_empty() => Ok(match judged(job, &outcome) {
                    Some(later) => later,
                    None => vec![tasks_over(job, array.remaining.clone(), &outcome)],
                }),
                _ => Err(conflict(format!("job {} has no tasks that wait, it is {}", job.id, word(access.state, job)))),
            },
        }?;
        if !ending.message.is_empty() && !matches!(target, Target::Task(..)) {
            events.insert(0, Event::JobMessage { job: target.id(), text: ending.message.clone() });
        }
        Ok(events)
    })
}

/// Closes jobs that are being ended, without their nodes (OAR-S-24).
pub(crate) fn give_up(
    access: &Access,
    jobs: &JobSelection,
    ending: &JobEnding,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    access.require_operator("close jobs without their nodes")?;
    if *ending != (JobEnding { gives_up: true, ..JobEnding::default() }) {
        return Err(invalid("ending.gives_up: no other choice goes with it"));
    }
    act_on(access, jobs, |target| {
        let run = match target {
            Target::Job(job) => job.run().and_then(|run| access.state.run(run)).filter(|run| run.stopping.is_some()),
            Target::Component(..) | Target::Task(..) | Target::Array(_) => None,
        };
        let run = run.ok_or_else(|| conflict(format!("job {} is not being ended", target.id())))?;
        Ok(runs::decide::given_up(access.state, run, now))
    })
}

pub(crate) fn signal(access: &Access, jobs: &JobSelection, signal: u8) -> Result<Decision, Refusal> {
    validate::signal("signal", signal)?;
    act_on(access, jobs, |target| {
        let run = started_run(access.state, target)?;
        Ok(vec![Event::JobSignalled { job: run.job, run: run.id, signal }])
    })
}

/// Stops jobs and puts them back into the queue, optionally not to start before a given time.
pub(crate) fn requeue(
    access: &Access,
    jobs: &JobSelection,
    hold: bool,
    begin: Option<Timestamp>,
) -> Result<Decision, Refusal> {
    let mut chain = access.state.next_chain();
    act_on(access, jobs, |target| {
        if let Target::Component(job, _) = target {
            return Err(not_alone(job));
        }
        let Target::Job(job) = target else {
            return Err(conflict(format!("job {} has not been started", target.id())));
        };
        let mut events = requeue_job(access.state, job, &mut chain)?;
        let holds = Holds { user: true, ..Holds::default() };
        if hold && !holds_of_all(target).user {
            events.push(Event::JobHeld { job: job.id, holds, reason: "requeued and held".into() });
        }
        if begin.is_some() {
            let change = Arc::new(JobChange { begin, ..JobChange::default() });
            events.push(Event::JobModified { job: job.id, change });
        }
        Ok(events)
    })
}

fn requeue_job(state: &State, job: &Job, chain: &mut u64) -> Result<Vec<Event>, Refusal> {
    let reason = StopReason::Requeued;
    match &job.phase {
        Phase::Active(run) if state.run(*run).is_some_and(|run| run.stopping.is_none()) => {
            Ok(vec![Event::RunStopping { job: job.id, run: *run, reason, grace_seconds: None }])
        }
        Phase::Active(_) | Phase::Settling => Err(conflict(format!("job {} is being stopped already", job.id))),
        Phase::Waiting => Err(conflict(format!("job {} waits already", job.id))),
        Phase::Finished(_) if job.id.index.is_some() && state.job(job.id.whole()).is_none() => {
            Err(conflict(format!("the array of job {} ended too long ago", job.id)))
        }
        // Tasks that succeeded are not run again, so nothing would run (HPC-F-22, HPC-S-13).
        Phase::Finished(finished) if job.tasks.is_some() && finished.outcome == Outcome::Completed => {
            Err(conflict(format!("job {} completed: all of its tasks have run", job.id)))
        }
        Phase::Finished(_) => requeue_finished(state, job, chain),
    }
}

/// A finished job goes through its submission filters again (HPC-F-22).
fn requeue_finished(state: &State, job: &Job, chain: &mut u64) -> Result<Vec<Event>, Refusal> {
    let gone = job.queues().find(|name| state.queue(name).is_none());
    match gone {
        Some(queue) => Err(conflict(format!("queue `{queue}` of job {} has been removed", job.id))),
        None if has_left_with_array(state, job) => {
            let whole = job.id.whole();
            Err(conflict(format!("job {}: the files of array {whole} have been staged out; submit it again", job.id)))
        }
        // They would meet the files of the next run.
        None if state.has_results_on_their_way(job) => {
            Err(conflict(format!("job {}: its results are being copied; try again when they have been", job.id)))
        }
        None => entry::enter_again(state, job, chain),
    }
}

/// Whether the job is a task of an array whose files, which are staged as a whole, are gone.
fn has_left_with_array(state: &State, job: &Job) -> bool {
    let whole = job.id.index.and_then(|_| state.job(job.id.whole()));
    let staging = whole.and_then(|whole| whole.staging.as_deref());
    staging.is_some_and(|staging| matches!(staging.stage, Stage::Leaving | Stage::Out))
}

/// The greatest length of a message to a job, in bytes.
const MAX_TOLD_BYTES: usize = 1024;

/// Sends a message to running jobs (SL-C-33).
pub(crate) fn tell(access: &Access, jobs: &JobSelection, text: &str) -> Result<Decision, Refusal> {
    if text.is_empty() || text.len() > MAX_TOLD_BYTES {
        return Err(invalid(format!("text: has {} bytes, and must have 1 to {MAX_TOLD_BYTES}", text.len())));
    }
    validate::text("text", text)?;
    act_on(access, jobs, |target| {
        let job = target.job();
        let run = job.run().and_then(|run| access.state.run(run)).filter(|run| run.started.is_some());
        match (target, run) {
            (Target::Job(_) | Target::Component(..), Some(run)) => {
                Ok(vec![Event::JobTold { job: job.id, run: run.id, text: text.to_owned() }])
            }
            _ => Err(conflict(format!("job {} does not run, it is {}", target.id(), word(access.state, job)))),
        }
    })
}
