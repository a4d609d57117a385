//! The jobs that a command applies to.

use crate::{
    decide::{Access, Decision, conflict, invalid, not_found, refuse},
    jobs::{Job, decide::endings::word},
    runs::Run,
    state::State,
};
use muster_schemas::{
    JobId,
    command::{JobFilter, JobSelection, Refusal, RefusalCode, Reply},
    event::{Actor, Event},
    job::JobState,
};
use std::collections::{BTreeMap, BTreeSet};

/// The run of a job whose processes exist and are not being stopped.
pub(crate) fn started_run<'a>(state: &'a State, target: Target<'a>) -> Result<&'a Run, Refusal> {
    let not_running = || {
        let job = target.job();
        conflict(format!("job {} does not run, it is {}", target.id(), word(state, job)))
    };
    if let Target::Component(job, _) = target {
        return Err(not_alone(job));
    }
    let Target::Job(job) = target else { return Err(not_running()) };
    let run = job.run().and_then(|run| state.run(run)).ok_or_else(not_running)?;
    if run.started.is_some() && run.stopping.is_none() { Ok(run) } else { Err(not_running()) }
}

/// The greatest number of ids in a command.
const MAX_IDS: usize = 100_000;

/// A target of a command.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    /// A plain job, or a task that has been started at least once.
    Job(&'a Job),
    /// The tasks of an array that have never started.
    Array(&'a Job),
    /// One of these tasks.
    Task(&'a Job, u32),
    /// An existing component of a plain job that has several.
    Component(&'a Job, u32),
}

impl<'a> Target<'a> {
    /// The job or array it belongs to.
    pub(crate) fn job(self) -> &'a Job {
        match self {
            Self::Job(job) | Self::Array(job) | Self::Task(job, _) | Self::Component(job, _) => job,
        }
    }

    /// Its id.
    pub(crate) fn id(self) -> JobId {
        match self {
            Self::Job(job) | Self::Array(job) | Self::Component(job, _) => job.id,
            Self::Task(job, index) => JobId::task(job.id.number, index),
        }
    }

    fn of(job: &'a Job) -> Self {
        if job.array.is_some() { Self::Array(job) } else { Self::Job(job) }
    }
}

/// Lets `act` decide for each selected job. A refusal for one named job refuses all, and for an array it refuses the
/// array and all its tasks. Jobs selected by a filter that cannot be acted on are skipped.
pub(crate) fn act_on<'a>(
    access: &Access<'a>,
    selection: &JobSelection,
    mut act: impl FnMut(Target<'a>) -> Result<Vec<Event>, Refusal>,
) -> Result<Decision, Refusal> {
    let mut events = Vec::new();
    let mut done = Vec::new();
    match selection {
        JobSelection::Ids(ids) => {
            for id in without_doubles(access.state, ids)? {
                events.extend(act_on_named(access, id, &mut act)?);
                done.push(id);
            }
        }
        JobSelection::Component { job, component } => {
            let target = find_component(access.state, access.state.id_meant(*job), *component)?;
            access.require_control(target.job())?;
            events.extend(act(target)?);
            done.push(*job);
        }
        JobSelection::Tasks { job, indices } => {
            let id = access.state.id_meant(*job).whole();
            let array = access.state.job(id).filter(|job| job.array.is_some());
            let array = array.ok_or_else(|| not_found(format!("there is no array {id}, or it ended too long ago")))?;
            access.require_control(array)?;
            if indices.len() > MAX_IDS as u64 {
                let message = format!("{} tasks named, at most {MAX_IDS} can be in one command", indices.len());
                return Err(invalid(message));
            }
            let mut first_refusal = None;
            for task in indices.iter().map(|index| JobId::task(id.number, index)) {
                match find(access.state, task).and_then(&mut act) {
                    Ok(follows) => {
                        follows.into_iter().for_each(|event| push_joined(&mut events, event));
                        done.push(task);
                    }
                    Err(refusal) => drop(first_refusal.get_or_insert(refusal)),
                }
            }
            if let Some(refusal) = first_refusal.filter(|_| done.is_empty()) {
                return Err(refusal);
            }
        }
        JobSelection::Matching(filter) => {
            let jobs = candidates(access, filter);
            for job in jobs.filter(|job| access.may_control(job) && matches(access.state, filter, job)) {
                if let Ok(follows) = act(Target::of(job)) {
                    events.extend(follows);
                    done.push(job.id);
                }
            }
        }
    }
    Ok(Decision { events, reply: Reply::Jobs(done) })
}

/// Adds an event; tasks of an array that end in the same way one after the other end by one event.
fn push_joined(events: &mut Vec<Event>, event: Event) {
    if let Event::TasksFinished { job, indices, outcome } = &event
        && let Some(Event::TasksFinished { job: array, indices: joined, outcome: known }) = events.last_mut()
        && (job, outcome) == (array, known)
    {
        for index in indices.iter() {
            joined.insert(index);
        }
        return;
    }
    events.push(event);
}

/// The jobs to match against the filter: those of one user if no others are possible.
fn candidates<'a>(access: &Access<'a>, filter: &JobFilter) -> Box<dyn Iterator<Item = &'a Job> + 'a> {
    let own = match access.actor {
        Actor::User(owner) if !access.is_operator() && !access.state.accounts().has_coordinator(&owner.user) => {
            Some(&owner.user)
        }
        _ => None,
    };
    match own.or(filter.user.as_ref()) {
        Some(user) => Box::new(access.state.jobs_of(user)),
        None => Box::new(access.state.jobs()),
    }
}

/// Each id once, without tasks of arrays that are named as a whole.
fn without_doubles(state: &State, ids: &[JobId]) -> Result<Vec<JobId>, Refusal> {
    if ids.len() > MAX_IDS {
        return Err(invalid(format!("{} jobs named, at most {MAX_IDS} can be in one command", ids.len())));
    }
    let ids: Vec<JobId> = ids.iter().map(|id| state.id_meant(*id)).collect();
    let named: BTreeSet<JobId> = ids.iter().copied().collect();
    let first = |id: &JobId| id.index.is_none() || !named.contains(&id.whole());
    let mut seen = BTreeSet::new();
    Ok(ids.into_iter().filter(first).filter(|id| seen.insert(*id)).collect())
}

fn act_on_named<'a>(
    access: &Access<'a>,
    id: JobId,
    act: &mut impl FnMut(Target<'a>) -> Result<Vec<Event>, Refusal>,
) -> Result<Vec<Event>, Refusal> {
    let target = find(access.state, id)?;
    access.require_control(target.job())?;
    let Target::Array(array) = target else { return act(target) };
    let mut events = Vec::new();
    let mut first_refusal = None;
    let mut accepted = false;
    let tasks = access.state.job_with_tasks(id.number).filter(|job| job.id.index.is_some()).map(Target::Job);
    for part in std::iter::once(Target::Array(array)).chain(tasks) {
        match act(part) {
            Ok(follows) => {
                accepted = true;
                events.extend(follows);
            }
            Err(refusal) => {
                first_refusal.get_or_insert(refusal);
            }
        }
    }
    match first_refusal {
        Some(refusal) if !accepted => Err(refusal),
        _ => Ok(events),
    }
}

/// The job, array or task with this id.
pub(crate) fn find(state: &State, id: JobId) -> Result<Target<'_>, Refusal> {
    if let Some(job) = state.job(id) {
        return Ok(Target::of(job));
    }
    let unknown = || not_found(format!("job {id} does not exist, or ended too long ago"));
    let index = id.index.ok_or_else(unknown)?;
    let whole = state.job(id.whole()).ok_or_else(unknown)?;
    let array = whole.array.as_ref().ok_or_else(|| not_found(format!("job {} is not an array", id.whole())))?;
    if array.remaining.contains(index) {
        return Ok(Target::Task(whole, index));
    }
    match array.task_outcome(index) {
        Some(outcome) => Err(conflict(format!("job {id} is over: {}", outcome.word()))),
        None => Err(not_found(format!("array {} has no task {index}", id.whole()))),
    }
}

/// The most tasks of an array that wait by themselves before they have started, and the most that one command may add:
/// each of them takes as much room as a job.
const MAX_APART: u32 = 1_000;

/// The tasks that one command sets apart, by the number of their array.
#[derive(Default)]
pub(crate) struct Apart(BTreeMap<u64, u32>);

impl Apart {
    /// A task that has not started as the job that it becomes when it alone changes.
    ///
    /// # Errors
    /// It waits for other jobs, for filters or for its files, as the whole array does, or too many tasks of its array wait
    /// by themselves.
    pub(crate) fn take(&mut self, array: &Job, index: u32) -> Result<Job, Refusal> {
        let task = set_apart(array, index)?;
        self.require_room(array)?;
        self.count(array);
        Ok(task)
    }

    /// # Errors
    /// Too many tasks of the array wait by themselves.
    pub(crate) fn require_room(&self, array: &Job) -> Result<(), Refusal> {
        let taken = self.0.get(&array.id.number).copied().unwrap_or_default();
        let before = array.array.as_ref().map_or(0, |array| array.unfinished.saturating_sub(array.running));
        if before.saturating_add(taken) >= MAX_APART {
            let message = format!(
                "{MAX_APART} tasks of array {} that have not started wait by themselves: change the whole array",
                array.id
            );
            return Err(refuse(RefusalCode::LimitReached, message));
        }
        Ok(())
    }

    /// Counts one more task that waits by itself.
    pub(crate) fn count(&mut self, array: &Job) {
        *self.0.entry(array.id.number).or_default() += 1;
    }
}

/// As [`Apart::take`], without counting the task.
pub(crate) fn set_apart(array: &Job, index: u32) -> Result<Job, Refusal> {
    let depends = array
        .components
        .iter()
        .filter_map(|component| component.extras.as_ref())
        .any(|extras| !extras.dependencies.is_empty() || !extras.before.is_empty() || extras.singletons_ahead > 0);
    let waits_as_a_whole = if depends {
        Some("dependencies")
    } else if array.filters.is_some() {
        Some("filters")
    } else {
        array.staging.as_ref().map(|_| "files to stage")
    };
    match waits_as_a_whole {
        Some(what) => Err(conflict(format!(
            "task {index} has not started, and array {} has {what}: change the whole array",
            array.id
        ))),
        None => Ok(array.task(index)),
    }
}

/// One component of a job that has several.
fn find_component(state: &State, id: JobId, component: u32) -> Result<Target<'_>, Refusal> {
    let Target::Job(job) = find(state, id)? else {
        return Err(invalid(format!("component: job {id} is an array or a task of one, which has one component")));
    };
    let components = job.components.len();
    if component as usize >= components {
        return Err(not_found(format!("component: job {id} has {components}, counted from 0")));
    }
    Ok(if components == 1 { Target::Job(job) } else { Target::Component(job, component) })
}

/// Refuses for a component what can only be done to whole jobs (SL-M-09).
pub(crate) fn not_alone(job: &Job) -> Refusal {
    conflict(format!("only job {} as a whole can be acted on so, not one component of it", job.id))
}

fn matches(state: &State, filter: &JobFilter, job: &Job) -> bool {
    let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
    let account =
        |wanted: &String| job.components.iter().any(|component| component.account.as_deref() == Some(wanted.as_str()));
    let queue = |wanted: &String| job.queues().any(|queue| **queue == **wanted);
    is(&filter.user, &job.owner.user)
        && is(&filter.name, &job.name)
        && filter.queue.as_ref().is_none_or(queue)
        && filter.account.as_ref().is_none_or(account)
        && matches_state(state, &filter.states, job)
}

/// An array with tasks that have never started matches by the state of those; its running tasks are matched separately.
fn matches_state(state: &State, states: &[JobState], job: &Job) -> bool {
    let found = match &job.array {
        Some(_) if job.is_waiting() && state.gate_reason(job).is_some() => JobState::Held,
        Some(_) if job.is_waiting() => JobState::Queued,
        _ => state.job_state(job),
    };
    if states.is_empty() { found != JobState::Finished } else { states.contains(&found) }
}
