//! What queues ask of the jobs that enter them.

use crate::{
    decide::{Access, conflict, not_found, refuse},
    nodes::Queue,
    requests::{self, fits},
    state::State,
    validate,
};
use muster_schemas::{
    cluster::QueueSpec,
    command::{Refusal, RefusalCode},
    event::Owner,
    job::JobSpec,
    resources::{Alternative, Request},
};

/// The queue with this name.
pub(crate) fn find_queue<'a>(state: &'a State, name: &str) -> Result<&'a Queue, Refusal> {
    state.queue(name).ok_or_else(|| not_found(format!("queue `{}` does not exist", validate::shown(name))))
}

/// How many jobs a submission counts as: an array as its tasks. More tasks than there can be are refused elsewhere.
pub(crate) fn tasks_of(spec: &JobSpec) -> u64 {
    spec.array.as_ref().map_or(1, |array| array.indices.len().min(validate::MAX_TASKS))
}

/// Whether a queue with this limit has room for these jobs, each component and each task counting as one (SL-L-01).
pub(crate) fn require_queue_room(state: &State, queue: &Queue, most: u32, entering: u64) -> Result<(), Refusal> {
    let name = &queue.spec.name;
    let there = queue.jobs.saturating_add_signed(state.index.submitted.further_in(name));
    match there.saturating_add(entering) > u64::from(most) {
        true => Err(refuse(RefusalCode::LimitReached, format!("queue `{name}` takes at most {most} jobs at a time"))),
        false => Ok(()),
    }
}

/// Whether the user's jobs may enter the queue.
pub(crate) fn require_entry(access: &Access, queue: &Queue, owner: &Owner) -> Result<(), Refusal> {
    let spec = &queue.spec;
    if !spec.enabled && !access.is_operator() {
        return Err(conflict(format!("queue `{}` takes no jobs", spec.name)));
    }
    if !spec.users.is_empty() && !spec.users.contains(&owner.user) && !access.is_operator() {
        let message = format!("user {} may not submit to queue `{}`", owner.user, spec.name);
        return Err(refuse(RefusalCode::PermissionDenied, message));
    }
    Ok(())
}

/// Fills in defaults of the alternatives, and checks them against the queue's limit. Operators may exceed it.
pub(crate) fn complete_alternatives(
    alternatives: &mut Vec<Alternative>,
    queue: &Queue,
    may_exceed: bool,
) -> Result<(), Refusal> {
    if alternatives.is_empty() {
        alternatives.push(Alternative::default());
    }
    for alternative in alternatives {
        if alternative.requests.is_empty() {
            alternative.requests.push(Request::default());
        }
        // The queue in which a job starts has its own defaults.
        if queue.spec.route.is_none() {
            let usual = queue.spec.default_walltime_seconds.or(queue.spec.max_walltime_seconds);
            alternative.walltime_seconds = alternative.walltime_seconds.or(usual);
        }
        require_walltime(queue, alternative.walltime_seconds, may_exceed)?;
    }
    Ok(())
}

/// Whether the queue allows the walltime.
pub(crate) fn require_walltime(queue: &Queue, wanted: Option<u64>, may_exceed: bool) -> Result<(), Refusal> {
    match (wanted, queue.spec.max_walltime_seconds) {
        (Some(wanted), Some(longest)) if wanted > longest && !may_exceed => {
            let name = &queue.spec.name;
            let message = format!("walltime_seconds: {wanted} is more than queue `{name}` allows, {longest}");
            Err(refuse(RefusalCode::LimitReached, message))
        }
        _ => Ok(()),
    }
}

/// Whether the queue takes jobs with these requests, in each of their alternatives. Operators may exceed its limits.
pub(crate) fn require_asked(
    state: &State,
    queue: &Queue,
    alternatives: &[Alternative],
    may_exceed: bool,
) -> Result<(), Refusal> {
    let QueueSpec { name, least_asked, most_asked, .. } = &*queue.spec;
    if may_exceed || least_asked.is_empty() && most_asked.is_empty() {
        return Ok(());
    }
    for way in &*requests::bounded(alternatives, &queue.spec) {
        for (what, asked) in requests::asked(way, state.settings()) {
            let least = least_asked.get(what).filter(|least| asked < **least);
            let most = most_asked.get(what).filter(|most| asked > **most);
            let fault = match (least, most) {
                (Some(least), _) => format!("less than queue `{name}` allows, {least}"),
                (_, Some(most)) => format!("more than queue `{name}` allows, {most}"),
                (None, None) => continue,
            };
            return Err(refuse(RefusalCode::LimitReached, format!("{what}: {asked} is {fault}")));
        }
    }
    Ok(())
}

/// Whether the cluster as configured can ever serve at least one of the alternatives.
pub(crate) fn require_fit(state: &State, queue: &Queue, alternatives: &[Alternative]) -> Result<(), Refusal> {
    match fits::never_fits(state, &queue.spec, alternatives) {
        Some(why) => Err(refuse(RefusalCode::Invalid, format!("{}{why}", fits::NEVER))),
        None => Ok(()),
    }
}
