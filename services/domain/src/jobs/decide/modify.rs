//! Changes to jobs.

use crate::{
    accounts::decide::entering,
    decide::{Access, Decision, conflict, invalid},
    dependencies,
    filters::Entry,
    fixed,
    jobs::{
        self, Job,
        decide::{
            moves::{Moves, concerns},
            passing::{self, Wanderer},
            queues,
            select::{Target, act_on, set_apart},
            submit,
        },
    },
    requests::{
        self,
        fits::{self, Wish},
    },
    sharing::Sharing,
    state::State,
    validate, walltimes,
};
use muster_schemas::{
    Timestamp,
    command::{JobSelection, Refusal},
    event::{Event, JobChange},
    resources::Alternative,
};
use std::sync::Arc;

pub(crate) fn modify(
    access: &Access,
    jobs: &JobSelection,
    change: JobChange,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    validate_change(&change, now)?;
    jobs::validate::attributes_of_operators(access, &change.attributes)?;
    let mut moves = Moves::default();
    act_on(access, jobs, |target| {
        access.require_management(target.job())?;
        let changes = match target {
            Target::Task(array, index) => changed_task(access, &mut moves, array, index, &change)?,
            Target::Component(job, component) => {
                let change = JobChange { component: Some(component), ..change.clone() };
                changed_job(access, &mut moves, job, &change, now)?
            }
            Target::Array(job) => changed_array(access, &mut moves, job, &change)?,
            Target::Job(job) => changed_job(access, &mut moves, job, &change, now)?,
        };
        let effective = |change: JobChange| JobChange { begin: change.begin.map(|begin| begin.max(now)), ..change };
        let modified = |change| Event::JobModified { job: target.id(), change: Arc::new(effective(change)) };
        Ok(changes.into_iter().map(modified).collect())
    })
}

/// The changes of a task that has not started: it leaves its array, and waits by itself from then on (SL-C-17). What
/// belongs to the array as a whole cannot be changed for one task.
fn changed_task(
    access: &Access,
    moves: &mut Moves,
    array: &Job,
    index: u32,
    change: &JobChange,
) -> Result<Vec<JobChange>, Refusal> {
    let task = set_apart(array, index)?;
    require_own(access.state, &task, change)?;
    moves.apart.require_room(array)?;
    let changes = changed_waiting(access, moves, &task, change)?;
    moves.apart.count(array);
    Ok(changes)
}

/// Refuses for a single task that has not started what belongs to all tasks of its array, and a queue that counts its
/// jobs: it would not count the task.
fn require_own(state: &State, task: &Job, change: &JobChange) -> Result<(), Refusal> {
    let Some(index) = task.id.index else { return Ok(()) };
    let not_started =
        |text: &str| conflict(format!("task {index} of array {} has not started, and {text}", task.id.whole()));
    let is_of_all = change.dependencies.is_some()
        || change.max_running.is_some()
        || !change.attributes.is_empty()
        || change.mails.is_some()
        || change.output.is_some();
    if is_of_all {
        let what = "its dependencies, its limit on running tasks, its mails, its output files and its attributes belong \
                    to all tasks";
        return Err(not_started(what));
    }
    let queue =
        change.queue.as_deref().filter(|name| task.components.iter().any(|component| *component.queue != **name));
    let queue = queue.map(|name| queues::find_queue(state, name)).transpose()?;
    match queue.filter(|queue| queue.spec.max_jobs.is_some()) {
        Some(queue) => {
            Err(not_started(&format!("queue `{}` limits its jobs: change the whole array", queue.spec.name)))
        }
        None => Ok(()),
    }
}

fn validate_change(change: &JobChange, now: Timestamp) -> Result<(), Refusal> {
    if change.is_empty() {
        return Err(invalid("change: nothing to change"));
    }
    change.name.as_ref().map_or(Ok(()), |name| validate::name("name", name))?;
    change.queue.as_ref().map_or(Ok(()), |queue| validate::name("queue", queue))?;
    change.account.as_ref().map_or(Ok(()), |account| validate::name("account", account))?;
    change.walltime_seconds.map_or(Ok(()), validate::walltime)?;
    change.alternatives.as_ref().map_or(Ok(()), |alternatives| requests::validate::alternatives(alternatives))?;
    change.dependencies.as_ref().map_or(Ok(()), dependencies::validate::dependencies)?;
    if change.max_running == Some(0) {
        return Err(invalid("max_running: is 0, no task could ever run"));
    }
    let reservation = change.reservation.as_deref().filter(|name| !name.is_empty());
    reservation.map_or(Ok(()), |name| validate::name("reservation", name))?;
    jobs::validate::attributes(&change.attributes)?;
    change.mails.as_deref().map_or(Ok(()), jobs::validate::mails)?;
    change.output.as_ref().map_or(Ok(()), jobs::validate::output)?;
    match change.deadline {
        Some(deadline) if deadline <= now => Err(invalid("deadline: has passed already")),
        _ => Ok(()),
    }
}

fn changed_array(access: &Access, moves: &mut Moves, job: &Job, change: &JobChange) -> Result<Vec<JobChange>, Refusal> {
    if job.is_finished() || !job.is_waiting() && !fits_started_array(change) {
        return Err(conflict(format!("array {} has no tasks that wait", job.id)));
    }
    changed_waiting(access, moves, job, change)
}

/// Whether the change can be made to an array whose tasks have all started.
fn fits_started_array(change: &JobChange) -> bool {
    let fitting = JobChange {
        max_running: change.max_running,
        requeue_on_node_lost: change.requeue_on_node_lost,
        attributes: change.attributes.clone(),
        component: change.component,
        mails: change.mails.clone(),
        ..JobChange::default()
    };
    *change == fitting
}

/// Whether a change affects nothing that submission filters and templates judge, so that it can be made before they
/// have.
fn is_beside_the_description(change: &JobChange) -> bool {
    let beside = JobChange {
        requeue_on_node_lost: change.requeue_on_node_lost,
        attributes: change.attributes.clone(),
        component: change.component,
        ..JobChange::default()
    };
    *change == beside
}

/// Jobs find by their names with whom they share cores, so those keep theirs (OAR-T-40).
fn require_same_name(job: &Job, change: &JobChange) -> Result<(), Refusal> {
    let is_other = change.name.as_ref().is_some_and(|name| **name != *job.name);
    let shares_by_name = matches!(Sharing::of(job), Some(Sharing::Peers { name: Some(_), .. }));
    match is_other && shares_by_name {
        true => Err(conflict(format!("job {} shares its cores with jobs of its name, and keeps it", job.id))),
        false => Ok(()),
    }
}

fn changed_job(
    access: &Access,
    moves: &mut Moves,
    job: &Job,
    change: &JobChange,
    now: Timestamp,
) -> Result<Vec<JobChange>, Refusal> {
    if change.max_running.is_some() {
        return Err(conflict(format!("job {} is not an array, it has no limit on running tasks", job.id)));
    }
    if job.is_finished() {
        return Err(conflict(format!("job {} is over", job.id)));
    }
    require_same_name(job, change)?;
    if let Some(increase) = &change.increase {
        walltimes::decide::require_alone(change)?;
        return walltimes::decide::ask(access, job, increase, now);
    }
    if job.is_waiting() {
        fixed::decide::require_kept(job, change)?;
        if job.attempts == 0 {
            require_own(access.state, job, change)?;
        }
        return changed_waiting(access, moves, job, change);
    }
    let running_only = JobChange {
        name: change.name.clone(),
        walltime_seconds: change.walltime_seconds,
        priority: change.priority,
        requeue_on_node_lost: change.requeue_on_node_lost,
        attributes: change.attributes.clone(),
        component: change.component,
        mails: change.mails.clone(),
        ..JobChange::default()
    };
    if *change != running_only {
        return Err(conflict(format!(
            "job {} no longer waits; only its name, walltime, priority, mails, attributes and whether it is requeued \
             can be changed",
            job.id
        )));
    }
    require_number(job, change.component)?;
    // It runs only because it ends before the job that it was backfilled around starts (HPC-B-12).
    let is_backfill = job.filters.as_ref().is_some_and(|filters| filters.is_backfill);
    if is_backfill && change.walltime_seconds.is_some() {
        let id = job.id;
        let message = format!(
            "[BackfillRunTimeFixed] job {id} was started around a job that waits: its walltime is fixed while it runs"
        );
        return Err(conflict(message));
    }
    require_walltime(access, job, change)?;
    Ok(vec![change.clone()])
}

/// The changes of a waiting job, with defaults filled in.
fn changed_waiting(
    access: &Access,
    moves: &mut Moves,
    job: &Job,
    change: &JobChange,
) -> Result<Vec<JobChange>, Refusal> {
    walltimes::decide::require_running(job, change)?;
    require_number(job, change.component)?;
    if change.output.is_some() && job.components.len() > 1 {
        return Err(invalid(format!("output: job {} has several components, each with its own files", job.id)));
    }
    let is_entering = job.filters.as_ref().is_some_and(|filters| filters.entry != Entry::Entered);
    if is_entering && !is_beside_the_description(change) {
        return Err(conflict(format!("job {} is not in the queue yet; change it when it is", job.id)));
    }
    let mut change = change.clone();
    if let Some(dependencies) = &mut change.dependencies {
        dependencies::decide::complete_dependencies(access, dependencies, Some(job.id), job.array.is_some())?;
    }
    require_walltime(access, job, &change)?;
    require_reservations(access, job, &change)?;
    require_associations(access, job, &change)?;
    let changes = match change.queue.is_some() || change.alternatives.is_some() {
        true => changed_needs(access, job, &change)?,
        false => vec![change.clone()],
    };
    // Checked last: it counts what is accepted.
    moves.check(access, job, &change)?;
    Ok(changes)
}

/// A change of a job's request or queue, completed for each of its components.
fn changed_needs(access: &Access, job: &Job, change: &JobChange) -> Result<Vec<JobChange>, Refusal> {
    require_names(access, job, change)?;
    let mut completed = Vec::with_capacity(job.components.len());
    let mut is_filled_in = false;
    for (number, component) in job.components.iter().enumerate() {
        let mut asked = component.shape.alternatives.to_vec();
        if concerns(change, number) {
            let queue = queues::find_queue(access.state, change.queue.as_deref().unwrap_or(&component.queue))?;
            asked = change.alternatives.clone().unwrap_or(asked);
            asked.iter_mut().for_each(|way| way.walltime_seconds = change.walltime_seconds.or(way.walltime_seconds));
            let left_open = asked.clone();
            queues::complete_alternatives(&mut asked, queue, access.is_operator())?;
            is_filled_in |= asked != left_open;
            submit::require_known_exclusions(access.state, &asked, &component.shape.alternatives)?;
            queues::require_fit(access.state, queue, &asked)?;
            queues::require_asked(access.state, queue, &asked, access.is_operator())?;
            if change.queue.is_some() {
                queues::require_entry(access, queue, &job.owner)?;
                let account = change.account.as_deref().or(component.account.as_deref());
                let (owner, priority) = (&*job.owner, component.priority);
                let tasks = job.array.as_ref().map_or(1, |array| array.remaining.len());
                let wanderer = Wanderer { owner, account, priority, alternatives: &asked, tasks };
                let is_whole = job.components.len() == 1 && job.id.index.is_none();
                passing::require_passable(access.state, queue, &wanderer, is_whole)?;
            }
        }
        completed.push(asked);
    }
    require_fit_together(access, job, change, &completed)?;
    match change.alternatives.is_some() || is_filled_in {
        true => Ok(split(change, &completed)),
        false => Ok(vec![change.clone()]),
    }
}

/// Splits a change if the completed requests of the components differ.
fn split(change: &JobChange, completed: &[Vec<Alternative>]) -> Vec<JobChange> {
    let all = || (0..).zip(completed).filter(|(number, _)| concerns(change, *number as usize));
    let mut asked = all().map(|(_, asked)| asked);
    let first = asked.next();
    if asked.all(|other| Some(other) == first) {
        return vec![JobChange { alternatives: first.cloned(), ..change.clone() }];
    }
    let rest = JobChange { alternatives: None, ..change.clone() };
    let own = |(number, asked): (u32, &Vec<Alternative>)| JobChange {
        component: Some(number),
        alternatives: Some(asked.clone()),
        ..JobChange::default()
    };
    let rest = Some(rest).filter(|rest| !rest.is_empty());
    rest.into_iter().chain(all().map(own)).collect()
}

/// The nodes and groups named by a change of a job with a description must exist, as at submission (HPC-J-18).
fn require_names(access: &Access, job: &Job, change: &JobChange) -> Result<(), Refusal> {
    let is_described = job.filters.as_ref().is_some_and(|filters| filters.received.is_some());
    let asked = change.alternatives.as_deref().filter(|_| is_described).unwrap_or_default();
    fits::unknown_name(access.state, asked).map_or(Ok(()), |unknown| Err(invalid(unknown)))
}

fn require_fit_together(
    access: &Access,
    job: &Job,
    change: &JobChange,
    completed: &[Vec<Alternative>],
) -> Result<(), Refusal> {
    let wishes = job.components.iter().zip(completed).enumerate().map(|(number, (component, asked))| {
        let queue = change.queue.as_deref().filter(|_| concerns(change, number)).unwrap_or(&component.queue);
        Ok(Wish { queue: &queues::find_queue(access.state, queue)?.spec, alternatives: asked })
    });
    let wishes = wishes.collect::<Result<Vec<_>, Refusal>>()?;
    if wishes.len() < 2 { Ok(()) } else { submit::require_fit_together(access.state, &wishes) }
}

/// The job must be allowed to use a new reservation, and a new account must be allowed to use the reservations that the
/// job names.
fn require_reservations(access: &Access, job: &Job, change: &JobChange) -> Result<(), Refusal> {
    let concerned = || job.components.iter().enumerate().filter(|(number, _)| concerns(change, *number));
    if let Some(name) = &change.reservation {
        for (_, component) in concerned().filter(|_| !name.is_empty()) {
            let account = change.account.as_deref().or(component.account.as_deref());
            submit::require_reservation(access.state, Some(name), &job.owner, account)?;
        }
        return Ok(());
    }
    let Some(account) = change.account.as_deref() else { return Ok(()) };
    for name in concerned().filter_map(|(_, component)| component.reservation()) {
        if access.state.reservation(name).is_some() {
            submit::require_reservation(access.state, Some(name), &job.owner, Some(account))?;
        }
    }
    Ok(())
}

/// The owner must have an association with a new account or queue, where this is enforced (SL-L-07).
fn require_associations(access: &Access, job: &Job, change: &JobChange) -> Result<(), Refusal> {
    if change.account.is_none() && change.queue.is_none() {
        return Ok(());
    }
    for (_, component) in job.components.iter().enumerate().filter(|(number, _)| concerns(change, *number)) {
        let account = change.account.as_deref().or(component.account.as_deref());
        let queue = change.queue.as_deref().unwrap_or(&component.queue);
        entering::require_association(access.state.accounts(), account, &job.owner, queue)?;
    }
    Ok(())
}

/// Whether a job has a component with this number.
fn require_number(job: &Job, component: Option<u32>) -> Result<(), Refusal> {
    match component {
        Some(number) if number as usize >= job.components.len() => {
            Err(invalid(format!("component: job {} has {}, counted from 0", job.id, job.components.len())))
        }
        _ => Ok(()),
    }
}

/// A job inside a planning domain ends with it at the latest (OAR-G-16).
fn require_end_in_domain(state: &State, job: &Job, walltime_seconds: u64) -> Result<(), Refusal> {
    let (Some(domain), Some(run)) = (job.domain(), job.run().and_then(|run| state.run(run))) else { return Ok(()) };
    let end = run.started.unwrap_or(run.allocated).plus_seconds(i64::try_from(walltime_seconds).unwrap_or(i64::MAX));
    let most = state.runs_for_domain(&domain).map(|holder| state.latest_end(holder)).max();
    match most.filter(|most| end > *most) {
        Some(most) => {
            Err(conflict(format!("job {} would outlast planning domain {domain}, which ends at {most}", job.id)))
        }
        None => Ok(()),
    }
}

/// A user may set any walltime that the queue allows while the job waits, and shorten it while it runs; operators may
/// set any.
fn require_walltime(access: &Access, job: &Job, change: &JobChange) -> Result<(), Refusal> {
    let Some(wanted) = change.walltime_seconds else { return Ok(()) };
    for (_, component) in job.components.iter().enumerate().filter(|(number, _)| concerns(change, *number)) {
        let queue = queues::find_queue(access.state, change.queue.as_deref().unwrap_or(&component.queue))?;
        queues::require_walltime(queue, Some(wanted), access.is_operator())?;
        let current = component.shape.alternatives.iter().filter_map(|alternative| alternative.walltime_seconds).max();
        let longer = current.is_some_and(|current| wanted > current);
        if longer && !job.is_waiting() {
            access.require_operator("lengthen the walltime of a running job")?;
            require_end_in_domain(access.state, job, wanted)?;
        }
        if current.is_some_and(|current| wanted < current) && !job.is_waiting() && job.opens_domain().is_some() {
            let message =
                format!("job {} holds its nodes for a planning domain, and keeps them for its walltime", job.id);
            return Err(conflict(message));
        }
    }
    Ok(())
}
