//! How a job enters the queue: received, changed while being configured, judged, checked.

use crate::{
    decide::{Access, Decision, conflict, invalid},
    filters::{
        self, Entry, JobFilters,
        chain::warned,
        decide::{holds, submission::chain},
        state::DEFAULT_TEMPLATE,
    },
    jobs::{
        self, Job, Phase,
        decide::{
            select::{Target, find},
            submit::{Submission, task_numbers},
        },
    },
    requests::fits,
    state::State,
    tasks, validate,
};
use muster_schemas::{
    JobId, Sequence, Timestamp,
    command::{Refusal, Reply},
    event::{Event, Intake, Owner, StopReason},
    filter::FilterKind,
    job::JobSpec,
    tasks::TaskList,
};
use std::sync::Arc;

/// Submits a job with a description, a template or its own tasks. For a description only its own bounds are checked
/// here; the check after the filters does the rest (HPC-J-03).
pub(crate) fn submit_document(
    access: &Access,
    mut spec: JobSpec,
    intake: Intake,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let state = access.state;
    let owner = access.require_user()?;
    validate::name("owner", &owner.user)?;
    jobs::validate::attributes_of_operators(access, &spec.attributes)?;
    let mut submission = Submission::new(access, owner, now, None);
    submission.require_room(std::slice::from_ref(&spec))?;
    complete(&mut submission, &mut spec, &intake)?;
    validate_intake(access, &spec, &intake, owner, now)?;
    let numbers = task_numbers(state, std::slice::from_ref(&spec));
    let job = JobId::job(state.next_job_number());
    let warnings = intake.warnings.clone();
    let template = intake.template.clone();
    let (is_configuring, components) = (intake.is_configuring, spec.components.len());
    let submitted = Event::JobSubmitted {
        job,
        owner: Arc::new(owner.clone()),
        spec: Arc::new(spec),
        intake: Some(Arc::new(intake)),
    };
    let mut events: Vec<Event> = numbers.into_iter().chain([submitted]).collect();
    events.extend(warned(job, warnings));
    if !is_configuring {
        let template = template.as_deref().or(Some(DEFAULT_TEMPLATE));
        events.extend(chain(state, (job, components), template, state.next_chain()));
    }
    Ok(Decision { events, reply: Reply::Submitted(vec![job]) })
}

fn complete(submission: &mut Submission, spec: &mut JobSpec, intake: &Intake) -> Result<(), Refusal> {
    if intake.document.is_some() { submission.complete_provisionally(spec) } else { submission.complete(spec) }
}

fn validate_intake(
    access: &Access,
    spec: &JobSpec,
    intake: &Intake,
    owner: &Owner,
    now: Timestamp,
) -> Result<(), Refusal> {
    intake.template.as_ref().map_or(Ok(()), |name| validate::name("template", name))?;
    if let Some(document) = &intake.document {
        filters::validate::document(document)?;
        return Ok(());
    }
    validate_tasks(spec, intake.tasks.as_ref())?;
    intake.hold_until.map_or(Ok(()), |until| holds::require_bounds(until, now))?;
    let template = intake.template.as_deref().unwrap_or(DEFAULT_TEMPLATE);
    let is_judged = !access.state.filters(FilterKind::Submission, Some(template)).is_empty();
    // A filter may still name another template (HPC-F-19).
    if is_judged { Ok(()) } else { require_template(access.state, template, owner).map_err(invalid) }
}

fn validate_tasks(spec: &JobSpec, tasks: Option<&TaskList>) -> Result<(), Refusal> {
    let Some(tasks) = tasks else { return Ok(()) };
    if spec.components.len() != 1 || spec.array.is_some() {
        return Err(invalid("tasks: a job that is a list of tasks has one component, and is no array"));
    }
    let walltime_seconds = spec.components[0].alternatives.iter().find_map(|alternative| alternative.walltime_seconds);
    tasks::validate::task_list(tasks, walltime_seconds)
}

/// Whether a template of this name exists and the owner may submit with it (HPC-T-08).
fn require_template(state: &State, name: &str, owner: &Owner) -> Result<(), String> {
    match state.template(name) {
        None if name.eq_ignore_ascii_case(DEFAULT_TEMPLATE) => Ok(()),
        None => Err(format!("[TemplateNotFound] template '{}' does not exist", validate::shown(name))),
        Some(template) if template.users.is_empty() || template.users.contains(&owner.user) => Ok(()),
        Some(template) => {
            Err(format!("[TemplateDenied] user {} may not submit with template '{}'", owner.user, template.name))
        }
    }
}

/// Replaces the specification and description of a job that is being configured (HPC-C-04). A caller that names the
/// version it started from is refused if the job has changed since.
pub(crate) fn configure(
    access: &Access,
    (id, made_from): (JobId, Option<Sequence>),
    mut spec: JobSpec,
    intake: Intake,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let job = being_made(access, id)?;
    if made_from.is_some_and(|version| version != job.submitted_sequence) {
        let message = format!("job {id} has changed meanwhile; repeat the change on its present version");
        return Err(conflict(message));
    }
    jobs::validate::attributes_of_operators(access, &spec.attributes)?;
    let mut submission = Submission::new(access, &job.owner, now, Some(job));
    complete(&mut submission, &mut spec, &intake)?;
    spec.dialect = job.dialect.as_deref().map(str::to_owned);
    validate_intake(access, &spec, &intake, &job.owner, now)?;
    if spec.components.len() != job.components.len() {
        let message = format!("components: job {id} has {} and keeps that number", job.components.len());
        return Err(invalid(message));
    }
    if !is_same_array(job, &spec) {
        return Err(invalid(format!("array: job {id} keeps the tasks that it was submitted with")));
    }
    let warnings = intake.warnings.clone();
    let mut events = vec![Event::JobConfigured { job: id, spec: Arc::new(spec), intake: Arc::new(intake) }];
    events.extend(warned(id, warnings));
    Ok(Decision { events, reply: Reply::Jobs(vec![id]) })
}

/// Whether a job being configured would keep its tasks; some may have been ended by now.
fn is_same_array(job: &Job, spec: &JobSpec) -> bool {
    match (&job.array, &spec.array) {
        (Some(known), Some(array)) => {
            let all = known.outcomes.values().fold(known.remaining.clone(), |all, over| all.union(over));
            all == array.indices && known.max_running == array.max_running
        }
        (known, array) => known.is_none() && array.is_none(),
    }
}

fn being_made<'a>(access: &Access<'a>, id: JobId) -> Result<&'a Job, Refusal> {
    let target = find(access.state, id)?;
    access.require_management(target.job())?;
    let entry = |job: &Job| job.filters.as_ref().map(|filters| filters.entry);
    match target {
        Target::Job(job) | Target::Array(job) if job.is_waiting() && entry(job) == Some(Entry::Configuring) => Ok(job),
        _ => Err(conflict(format!("job {id} is no longer being made"))),
    }
}

/// Lets a job enter the queue that was being configured, or was refused before it was in the queue.
pub(crate) fn enter(access: &Access, id: JobId, now: Timestamp) -> Result<Decision, Refusal> {
    let target = find(access.state, id)?;
    access.require_management(target.job())?;
    let job = target.job();
    let filters = job.filters.as_deref();
    let entry = filters.map(|filters| filters.entry);
    let mut numbers = access.state.next_chain();
    let events = match (&job.phase, entry) {
        (Phase::Finished(_), Some(Entry::Refused)) => enter_again(access.state, job, &mut numbers)?,
        (Phase::Waiting, Some(Entry::Configuring)) => {
            let has_document = filters.is_some_and(|filters| filters.received.is_some());
            let until = filters.and_then(|filters| filters.hold).filter(|_| !has_document);
            until.map_or(Ok(()), |(until, _)| holds::require_bounds(until, now))?;
            entering(access.state, job, &mut numbers)
        }
        _ => {
            return Err(conflict(format!("job {id} is not being made, and was not refused on its way into the queue")));
        }
    };
    Ok(Decision { events, reply: Reply::Jobs(vec![id]) })
}

/// What a job goes through to enter the queue. `number` is that of the next chain, and is advanced.
fn entering(state: &State, job: &Job, number: &mut u64) -> Vec<Event> {
    let filters = job.filters.as_deref();
    let mut events = Vec::new();
    if filters.is_some_and(|filters| filters.received.is_some() || filters.entry != Entry::Entered) {
        events.push(Event::JobEntered { job: job.id });
    }
    let template = filters.and_then(|filters| filters.template.as_deref());
    events.extend(chain(state, (job.id, job.components.len()), template, *number));
    *number += u64::from(!events.is_empty());
    events
}

/// Queues a finished job again: its submission filters judge it from the start, as it was submitted (HPC-F-22).
pub(crate) fn enter_again(state: &State, job: &Job, number: &mut u64) -> Result<Vec<Event>, Refusal> {
    if job.filters.as_ref().is_some_and(|filters| filters.chain.is_some()) {
        let message = "its filters are still rolling back; try again when they have finished";
        return Err(conflict(format!("job {}: {message}", job.id)));
    }
    if job.staging_due() == Some(FilterKind::StageOut) {
        let message = "its files are still to be staged out; try again when they have been";
        return Err(conflict(format!("job {}: {message}", job.id)));
    }
    let mut events = vec![Event::JobRequeued { job: job.id, reason: StopReason::Requeued }];
    if job.id.index.is_none() {
        events.extend(entering(state, job, number));
    }
    Ok(events)
}

/// The part of the check after the filters that needs the state: whether the owner may use the template and the queue,
/// the named nodes exist, and the cluster can ever serve the job (HPC-J-03, J-16, J-18, HPC-T-08). Returns the
/// specification with defaults filled in.
///
/// # Errors
/// The text with which the job is refused: a code in brackets, and the reason.
pub(crate) fn check(
    state: &State,
    job: &Job,
    (template, tasks): (Option<&str>, Option<&TaskList>),
    mut spec: JobSpec,
    now: Timestamp,
) -> Result<JobSpec, String> {
    let known = job.filters.as_deref().and_then(|filters: &JobFilters| filters.template.as_deref());
    if let Some(template) = template.or(known) {
        require_template(state, template, &job.owner)?;
    }
    let actor = muster_schemas::event::Actor::User((*job.owner).clone());
    let access = Access { state, actor: &actor };
    let mut submission = Submission::new(&access, &job.owner, now, Some(job));
    if spec.components.len() != job.components.len() {
        let (now_has, had) = (spec.components.len(), job.components.len());
        return Err(format!("[JobNotValid] {now_has} components, the job was submitted with {had}"));
    }
    let is_described = job.filters.as_ref().is_some_and(|filters| filters.received.is_some());
    if is_described && let Some(unknown) = unknown_name(state, &spec) {
        return Err(unknown);
    }
    leave_to_new_queues(state, job, &mut spec);
    submission.complete(&mut spec).map_err(|refusal| coded(state, &spec, &refusal))?;
    validate_tasks(&spec, tasks).map_err(|refusal| format!("[TaskNotValid] {}", refusal.message))?;
    Ok(spec)
}

/// Removes from a component that a filter sent to another queue what its first queue gave it.
fn leave_to_new_queues(state: &State, job: &Job, spec: &mut JobSpec) {
    for (known, component) in job.components.iter().zip(&mut spec.components) {
        let Some(queue) = state.queue(&known.queue).map(|queue| &queue.spec) else { continue };
        if component.queue.as_deref() == Some(&*queue.name) {
            continue;
        }
        component.priority = component.priority.filter(|priority| *priority != queue.default_job_priority);
        let given = queue.default_walltime_seconds.or(queue.max_walltime_seconds);
        for alternative in &mut component.alternatives {
            alternative.walltime_seconds = alternative.walltime_seconds.filter(|own| Some(*own) != given);
        }
    }
}

/// Like [`check`], for a job without a description that no filter changed.
pub(crate) fn check_unchanged(state: &State, job: &Job) -> Result<(), String> {
    let template = job.filters.as_deref().and_then(|filters| filters.template.as_deref());
    template.map_or(Ok(()), |template| require_template(state, template, &job.owner))
}

fn unknown_name(state: &State, spec: &JobSpec) -> Option<String> {
    spec.components.iter().find_map(|component| fits::unknown_name(state, &component.alternatives))
}

/// The refusal in the form in which it ends a job. If the cluster can never serve the job, the cause may be a name in
/// its request.
fn coded(state: &State, spec: &JobSpec, refusal: &Refusal) -> String {
    let message = &refusal.message;
    if message.starts_with('[') {
        return message.clone();
    }
    if !message.contains(fits::NEVER) {
        return format!("[JobNotValid] {message}");
    }
    let too_many_excluded = spec.components.iter().find_map(|component| {
        let queue = state.queue(component.queue.as_deref()?)?;
        fits::too_many_excluded(state, &queue.spec, &component.alternatives)
    });
    let named = unknown_name(state, spec).or(too_many_excluded);
    named.unwrap_or_else(|| format!("[ClusterTooSmall] {message}"))
}
