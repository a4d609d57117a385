//! Queues that pass jobs on: to the first destination that takes them. A job that none takes now waits, if one can take it
//! later.

use crate::{
    accounts::decide::entering,
    decide::{Access, refuse},
    filters::Entry,
    jobs::{
        Component, Job, ShapeId,
        decide::{
            endings::given_up,
            moves::Moves,
            queues::{
                complete_alternatives, require_asked, require_fit, require_queue_room, require_walltime, tasks_of,
            },
        },
    },
    nodes::Queue,
    state::State,
};
use muster_schemas::{
    JobId, Timestamp,
    cluster::Route,
    command::{Refusal, RefusalCode},
    event::{Actor, Event, JobChange, Owner},
    job::{self, Outcome},
    resources::Alternative,
};
use std::{collections::BTreeSet, sync::Arc};

/// A job that looks for a queue.
pub(crate) struct Wanderer<'a> {
    pub(crate) owner: &'a Owner,
    pub(crate) account: Option<&'a str>,
    pub(crate) priority: i64,
    pub(crate) alternatives: &'a [Alternative],
    /// How many jobs it counts as: an array as its tasks.
    pub(crate) tasks: u64,
}

/// What a destination says to a job.
enum Answer {
    Takes,
    /// It may take it later: why not now.
    Later,
    /// It never does: why.
    Never(String),
}

/// The queues to which a queue passes jobs on, in their order, and whether one of them, which passes jobs on itself, is
/// shut now.
fn destinations<'s>(state: &'s State, route: &'s Route) -> (Vec<&'s Queue>, bool) {
    let mut found: Vec<&Queue> = Vec::new();
    let mut is_any_shut = false;
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = route.destinations.iter().rev().map(String::as_str).collect();
    while let Some(name) = open.pop() {
        let Some(queue) = state.queue(name).filter(|_| seen.insert(name)) else { continue };
        match &queue.spec.route {
            None => found.push(queue),
            Some(_) if !queue.spec.started || !queue.spec.enabled => is_any_shut = true,
            Some(further) => open.extend(further.destinations.iter().rev().map(String::as_str)),
        }
    }
    (found, is_any_shut)
}

/// What a queue says to a job, whoever its owner is: limits that operators may exceed count.
fn ask(state: &State, queue: &Queue, job: &Wanderer<'_>) -> Answer {
    let spec = &queue.spec;
    if !spec.users.is_empty() && !spec.users.contains(&job.owner.user) {
        return Answer::Never(format!("user {} may not submit to it", job.owner.user));
    }
    let limits = || {
        let asked = completed(queue, job.alternatives)?;
        asked.iter().try_for_each(|way| require_walltime(queue, way.walltime_seconds, false))?;
        require_asked(state, queue, &asked, false)?;
        entering::require_association(state.accounts(), job.account, job.owner, &spec.name)
    };
    if let Err(refusal) = limits() {
        return Answer::Never(refusal.message);
    }
    if let Some(most) = spec.max_jobs.filter(|most| u64::from(*most) < job.tasks) {
        return Answer::Never(format!("it takes at most {most} jobs at a time, and these are {}", job.tasks));
    }
    match spec.enabled && has_room(state, queue, job.tasks) {
        true => Answer::Takes,
        false => Answer::Later,
    }
}

/// Whether so many more jobs can enter a queue.
fn has_room(state: &State, queue: &Queue, tasks: u64) -> bool {
    queue.spec.max_jobs.is_none_or(|most| require_queue_room(state, queue, most, tasks).is_ok())
}

/// Whether a queue takes a job now, and its nodes can serve it.
fn takes(state: &State, queue: &Queue, job: &Wanderer<'_>) -> bool {
    matches!(ask(state, queue, job), Answer::Takes) && require_fit(state, queue, job.alternatives).is_ok()
}

/// A request with the defaults of a queue.
fn completed(queue: &Queue, alternatives: &[Alternative]) -> Result<Vec<Alternative>, Refusal> {
    let mut asked = alternatives.to_vec();
    complete_alternatives(&mut asked, queue, true)?;
    Ok(asked)
}

/// The first destination that takes a job now, and whose nodes can serve it.
fn first<'s>(state: &'s State, route: &'s Route, job: &Wanderer<'_>) -> Option<&'s Queue> {
    destinations(state, route).0.into_iter().find(|queue| takes(state, queue, job))
}

/// Requires of a queue that passes jobs on that it can pass this one on, now or later.
pub(crate) fn require_destination(state: &State, from: &Queue, job: &Wanderer<'_>) -> Result<(), Refusal> {
    let Some(route) = &from.spec.route else { return Ok(()) };
    let (queues, is_any_shut) = destinations(state, route);
    let mut said = Vec::new();
    for queue in &queues {
        let why = match ask(state, queue, job) {
            Answer::Never(why) => why,
            Answer::Takes | Answer::Later => match require_fit(state, queue, job.alternatives) {
                Ok(()) => return Ok(()),
                Err(refusal) => refusal.message,
            },
        };
        said.push(format!("{}: {why}", queue.spec.name));
    }
    if is_any_shut {
        return Ok(());
    }
    let name = &from.spec.name;
    let message = match said.is_empty() {
        true => format!("queue `{name}` has no queue to which it passes jobs on"),
        false => format!("no queue to which queue `{name}` passes jobs on takes the job: {}", said.join("; ")),
    };
    Err(refuse(RefusalCode::LimitReached, message))
}

/// The change that moves a job into a queue: with that queue's defaults where it has those of the first one.
fn moved(from: &Queue, to: &Queue, job: &Wanderer<'_>) -> JobChange {
    let asked = completed(to, job.alternatives).ok().filter(|asked| *asked != job.alternatives);
    let (before, after) = (from.spec.default_job_priority, to.spec.default_job_priority);
    JobChange {
        queue: Some(to.spec.name.clone()),
        alternatives: asked,
        priority: (job.priority == before && after != before).then_some(after),
        ..JobChange::default()
    }
}

/// Where a job goes that is submitted now to a queue that passes jobs on; `None` if it stays there for now.
pub(crate) fn at_submission(state: &State, owner: &Owner, spec: &job::JobSpec, now: Timestamp) -> Option<JobChange> {
    let [component] = spec.components.as_slice() else { return None };
    let from = state.queue(component.queue.as_deref()?)?;
    let route = from.spec.route.as_deref().filter(|_| from.spec.started)?;
    let is_held = !component.holds.is_empty() || component.dependencies != job::Dependencies::default();
    let waits = component.begin.is_some_and(|begin| begin > now);
    // What else counts is known once it is a job.
    let is_judged = state.filter_settings().submission.is_some() || state.accounts().settings().limits;
    if is_judged || is_held && !route.held_jobs || waits && !route.waiting_jobs {
        return None;
    }
    let job = Wanderer {
        owner,
        account: component.account.as_deref(),
        priority: component.priority.unwrap_or_default(),
        alternatives: &component.alternatives,
        tasks: tasks_of(spec),
    };
    Some(moved(from, first(state, route, &job)?, &job))
}

/// Whether its queue passes a job on as it is now.
fn is_ready(job: &Job, route: &Route) -> bool {
    let filters = job.filters.as_deref();
    let has_entered = filters.is_none_or(|filters| filters.entry == Entry::Entered && filters.chain.is_none());
    let is_free = |component: &Component| {
        let extras = component.extras.as_deref();
        component.holds.is_empty() && extras.is_none_or(|extras| extras.dependencies_met())
    };
    let has_begun = |component: &Component| component.extras.as_deref().is_none_or(|extras| extras.begin_open());
    let is_held_by_filters = filters.is_some_and(|filters| filters.hold.is_some());
    has_entered
        && (route.held_jobs || !is_held_by_filters && job.components.iter().all(is_free))
        && (route.waiting_jobs || job.components.iter().all(has_begun))
}

fn wanderer(job: &Job) -> Wanderer<'_> {
    let lead = job.lead();
    Wanderer {
        owner: &job.owner,
        account: lead.account.as_deref(),
        priority: lead.priority,
        alternatives: &lead.shape.alternatives,
        tasks: job.array.as_ref().map_or(1, |array| array.remaining.len()),
    }
}

/// What destinations judge a job by, beside the queue that it comes from: its request, its owner, account and class, and how many
/// tasks it has.
type Asked<'s> = (ShapeId, &'s str, Option<&'s str>, Option<&'s Arc<str>>, u64);

/// A look at the jobs of a queue that passes jobs on. Very many can wait there, so it ends where no destination has room, and
/// jobs that ask for the same are judged once.
struct Look<'s> {
    access: Access<'s>,
    from: &'s Queue,
    route: &'s Route,
    /// The destinations that take jobs now.
    open: Vec<&'s Queue>,
    /// What none of them takes.
    refused: BTreeSet<Asked<'s>>,
}

impl<'s> Look<'s> {
    fn new(state: &'s State, from: &'s Queue, route: &'s Route) -> Self {
        let destinations = if from.spec.started { destinations(state, route).0 } else { Vec::new() };
        let open = destinations.into_iter().filter(|queue| queue.spec.enabled && has_room(state, queue, 1)).collect();
        Self { access: Access { state, actor: &Actor::Ledger }, from, route, open, refused: BTreeSet::new() }
    }

    /// The move of a waiting job, if it is ready and a queue takes it.
    fn passed_on(&mut self, moves: &mut Moves, job: &'s Job) -> Option<JobChange> {
        if self.open.is_empty() || !is_ready(job, self.route) {
            return None;
        }
        let lead = job.lead();
        let wanderer = wanderer(job);
        let asked = (lead.shape.id, job.owner.user.as_str(), lead.account.as_deref(), lead.class(), wanderer.tasks);
        if self.refused.contains(&asked) {
            return None;
        }
        let change = self.open.iter().find_map(|to| {
            let change = takes(self.access.state, to, &wanderer).then(|| moved(self.from, to, &wanderer))?;
            moves.check(&self.access, job, &change).is_ok().then_some(change)
        });
        if change.is_none() {
            self.refused.insert(asked);
        }
        change
    }

    /// When a job that has waited since then has waited for too long.
    fn expires(&self, since: Timestamp) -> Option<Timestamp> {
        let seconds = i64::try_from(self.route.lifetime_seconds?).unwrap_or(i64::MAX);
        Some(since.plus_seconds(seconds))
    }
}

/// The queues that pass jobs on, each with the jobs that wait in it, those that have waited longest first.
fn looks(state: &State) -> impl Iterator<Item = (Look<'_>, &BTreeSet<(Timestamp, JobId)>)> {
    state.index.passing.iter().filter(|(_, jobs)| !jobs.is_empty()).filter_map(|(name, jobs)| {
        let from = state.queue(name)?;
        Some((Look::new(state, from, from.spec.route.as_deref()?), jobs))
    })
}

/// Moves of jobs that a queue takes now, and the ends of those that have waited for one for too long.
pub(crate) fn due(state: &State, now: Timestamp, most: usize) -> Vec<Event> {
    let mut moves = Moves::default();
    let mut events = Vec::new();
    for (mut look, jobs) in looks(state) {
        for (since, id) in jobs {
            let Some(job) = state.job(*id) else { continue };
            if events.len() >= most {
                return events;
            }
            if let Some(change) = look.passed_on(&mut moves, job) {
                events.push(Event::JobModified { job: job.id, change: Arc::new(change) });
            } else if look.expires(*since).is_some_and(|at| at <= now) {
                let name = &look.from.spec.name;
                let why =
                    format!("[RouteExpired] no queue to which queue `{name}` passes jobs on took the job in time");
                events.push(given_up(job, Outcome::Refused(why)));
            } else if look.open.is_empty() {
                break;
            }
        }
    }
    events
}

impl State {
    /// When a job in a queue that passes jobs on is next due: now if it can be moved.
    pub(crate) fn next_passing_on(&self) -> Option<Timestamp> {
        let mut first = None;
        for (mut look, jobs) in looks(self) {
            let is_any_open = !look.open.is_empty();
            let mut waiting = jobs.iter().filter(|_| is_any_open).filter_map(|(_, id)| self.job(*id));
            if waiting.any(|job| look.passed_on(&mut Moves::default(), job).is_some()) {
                return Some(self.time());
            }
            let oldest = jobs.first().and_then(|(since, _)| look.expires(*since));
            first = first.into_iter().chain(oldest).min();
        }
        first
    }
}

/// Requires that a job that enters a queue that passes jobs on has one component, is no task, and finds a queue.
pub(crate) fn require_passable(state: &State, from: &Queue, job: &Wanderer<'_>, is_whole: bool) -> Result<(), Refusal> {
    if from.spec.route.is_none() {
        return Ok(());
    }
    if !is_whole {
        let message = format!("queue `{}` passes on whole jobs of one component only", from.spec.name);
        return Err(refuse(RefusalCode::Invalid, message));
    }
    require_destination(state, from, job)
}
