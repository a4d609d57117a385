//! Submission: validation, defaults, limits, and whether a job can ever run.

use crate::{
    accounts::decide::entering::{self, Entering},
    decide::{Access, Decision, invalid, not_found, refuse},
    dependencies::decide::{complete_dependencies, followers_of_replaced},
    filters::decide::submission,
    jobs::{
        self, Job,
        decide::{
            passing::{self, Wanderer},
            queues::{
                complete_alternatives, find_queue, require_asked, require_entry, require_fit, require_queue_room,
                tasks_of,
            },
        },
        numbers::numbers_taken,
    },
    nesting,
    requests::fits::{self, Wish},
    state::State,
    validate,
};
use muster_schemas::{
    JobId, Timestamp,
    command::{Refusal, RefusalCode, Reply},
    event::{Event, JobChange, Owner},
    job::{Component, Dependencies, JobSpec, JobType, Program},
    resources::Alternative,
};
use std::{collections::BTreeMap, sync::Arc};

pub(crate) fn submit(state: &State, access: &Access, jobs: Vec<JobSpec>, now: Timestamp) -> Result<Decision, Refusal> {
    let owner = access.require_user()?;
    validate::name("owner", &owner.user)?;
    if jobs.is_empty() || jobs.len() > validate::MAX_JOBS {
        return Err(invalid(format!("jobs: {} given, 1 to {} can be in one command", jobs.len(), validate::MAX_JOBS)));
    }
    let mut submission = Submission::new(access, owner, now, None);
    submission.require_room(&jobs)?;
    let owner = Arc::new(owner.clone());
    let single = jobs.len() == 1;
    let mut events = Vec::with_capacity(jobs.len());
    events.extend(task_numbers(state, &jobs));
    let are_tasks_numbered = state.task_numbers_from().is_some() || !events.is_empty();
    let mut next = state.next_job_number();
    let mut ids = Vec::with_capacity(jobs.len());
    for (at, mut spec) in jobs.into_iter().enumerate() {
        let named = |refusal: Refusal| match single {
            true => refusal,
            false => Refusal { message: format!("job {} of the submission: {}", at + 1, refusal.message), ..refusal },
        };
        jobs::validate::attributes_of_operators(access, &spec.attributes).map_err(named)?;
        submission.complete(&mut spec).map_err(named)?;
        let job = JobId::job(next);
        let components = spec.components.len();
        next += numbers_taken(&spec, are_tasks_numbered);
        ids.push(job);
        let passed_on = submission.passed_on(&spec);
        let followers = followers_of_replaced(access, &spec, job).map_err(named)?;
        events.push(Event::JobSubmitted { job, owner: owner.clone(), spec: Arc::new(spec), intake: None });
        events.extend(passed_on.map(|change| Event::JobModified { job, change: Arc::new(change) }));
        events.extend(followers);
        if state.filter_settings().submission.is_some() {
            events.extend(submission::chain(state, (job, components), None, state.next_chain() + ids.len() as u64 - 1));
        }
    }
    Ok(Decision { events, reply: Reply::Submitted(ids) })
}

/// Starting with the first array that this version adds to a log, tasks of arrays have their own numbers.
pub(crate) fn task_numbers(state: &State, jobs: &[JobSpec]) -> Option<Event> {
    let is_first = state.task_numbers_from().is_none() && jobs.iter().any(|job| job.array.is_some());
    is_first.then(|| Event::JobNumbersSet { first: state.first_job_number() })
}

/// Maximum number of jobs with a fixed start of a user that wait.
const MOST_FIXED: usize = 2;

/// The number of fitting requests remembered per submission.
const MAX_FITTING: usize = 32;

pub(crate) struct Submission<'a> {
    state: &'a State,
    access: &'a Access<'a>,
    owner: &'a Owner,
    now: Timestamp,
    /// The job, if it already exists and is being changed.
    own: Option<&'a Job>,
    /// Requests found to fit, with their queues: the jobs of one submission mostly ask for the same.
    fitting: Vec<(String, Vec<Alternative>)>,
    /// For each queue with a limit, the number of jobs of this submission that enter it.
    queued: BTreeMap<String, u64>,
    /// Their effect on accounts and classes.
    entering: Entering,
    /// The number of the owner's waiting jobs with a fixed start, with those of this submission, once it matters.
    fixed: Option<usize>,
}

impl<'a> Submission<'a> {
    /// Checks for the jobs of an owner, or for an existing job that is being changed.
    pub(crate) fn new(access: &'a Access<'a>, owner: &'a Owner, now: Timestamp, own: Option<&'a Job>) -> Self {
        Self {
            state: access.state,
            access,
            owner,
            now,
            own,
            fitting: Vec::new(),
            queued: BTreeMap::new(),
            entering: Entering::default(),
            fixed: None,
        }
    }

    /// Whether the cluster has room for these jobs, each task counting as one.
    pub(crate) fn require_room(&self, jobs: &[JobSpec]) -> Result<(), Refusal> {
        let most = self.state.settings().max_jobs;
        let entering = jobs.iter().fold(0_u64, |sum, spec| sum.saturating_add(tasks_of(spec)));
        if self.state.unfinished_tasks().saturating_add(entering) > most {
            return Err(refuse(RefusalCode::LimitReached, format!("the cluster takes at most {most} jobs at a time")));
        }
        Ok(())
    }

    /// Fills in defaults for a job that is checked later, and leaves out what only counts then: its dependencies, its
    /// reservation, and a queue that does not exist.
    pub(crate) fn complete_provisionally(&mut self, spec: &mut JobSpec) -> Result<(), Refusal> {
        jobs::validate::job(spec)?;
        let default = self.state.settings().default_queue.clone();
        if spec.components.is_empty() {
            spec.components.push(Component::default());
        }
        for component in &mut spec.components {
            let known = component.queue.take().filter(|name| self.state.queue(name).is_some());
            let queue = find_queue(self.state, component.queue.insert(known.unwrap_or_else(|| default.clone())))?;
            component.priority.get_or_insert(queue.spec.default_job_priority);
            complete_alternatives(&mut component.alternatives, queue, true)?;
            component.dependencies = Dependencies::default();
            component.reservation = None;
        }
        if spec.name.is_empty() {
            spec.name = default_name(&spec.components[0]);
        }
        Ok(())
    }

    /// Checks a job and fills in its defaults.
    pub(crate) fn complete(&mut self, spec: &mut JobSpec) -> Result<(), Refusal> {
        jobs::validate::job(spec)?;
        if spec.components.is_empty() {
            spec.components.push(Component::default());
        }
        if spec.name.is_empty() {
            spec.name = default_name(&spec.components[0]);
        }
        let is_whole = spec.components.len() == 1;
        let tasks = tasks_of(spec);
        for component in &mut spec.components {
            self.complete_component(component, is_whole, (spec.array.is_some(), tasks))?;
        }
        self.require_fit_together(spec)?;
        self.entering.check(self.state, self.owner, self.own, spec)?;
        self.check_queue_limits(spec)?;
        if spec.exceeds_quotas {
            self.access.require_operator("lift quotas")?;
        }
        self.require_room_for_fixed(spec)?;
        nesting::decide::complete(self.state, spec)
    }

    /// A fixed start keeps resources from all others, so a user has few that wait (OAR-G-15).
    fn require_room_for_fixed(&mut self, spec: &JobSpec) -> Result<(), Refusal> {
        let is_listed = self.state.settings().unlimited_fixed_starts.contains(&self.owner.user);
        let is_free = is_listed || self.own.is_some() || self.access.is_operator();
        if is_free || !spec.types.contains(&JobType::FixedStart) {
            return Ok(());
        }
        let is_waiting = |job: &&Job| job.is_waiting() && job.fixed_time().is_some();
        let before = *self.fixed.get_or_insert_with(|| self.state.jobs_of(&self.owner.user).filter(is_waiting).count());
        if before >= MOST_FIXED {
            let message =
                format!("{MOST_FIXED} jobs of user {} with a fixed start wait: limit reached", self.owner.user);
            return Err(refuse(RefusalCode::LimitReached, message));
        }
        self.fixed = Some(before + 1);
        Ok(())
    }

    /// Where a job goes at once whose queue passes it on. Its new queue counts it.
    fn passed_on(&mut self, spec: &JobSpec) -> Option<JobChange> {
        let change = passing::at_submission(self.state, self.owner, spec, self.now)?;
        let queue = self.state.queue(change.queue.as_deref()?)?;
        if let Some(most) = queue.spec.max_jobs {
            let entering = self.queued.entry(queue.spec.name.clone()).or_default();
            *entering += tasks_of(spec);
            require_queue_room(self.state, queue, most, *entering).ok()?;
        }
        Some(change)
    }

    fn complete_component(
        &mut self,
        component: &mut Component,
        is_whole: bool,
        (is_array, tasks): (bool, u64),
    ) -> Result<(), Refusal> {
        let state = self.state;
        let name = component.queue.get_or_insert_with(|| state.settings().default_queue.clone());
        let queue = find_queue(state, name)?;
        require_entry(self.access, queue, self.owner)?;
        entering::complete(self.access, self.owner, component)?;
        component.priority.get_or_insert(queue.spec.default_job_priority);
        complete_alternatives(&mut component.alternatives, queue, self.access.is_operator())?;
        if self.own.is_none() {
            require_known_exclusions(state, &component.alternatives, &[])?;
        }
        if !self.fits_as_before(&queue.spec.name, &component.alternatives) {
            require_fit(state, queue, &component.alternatives)?;
            self.remember_fitting(&queue.spec.name, &component.alternatives);
        }
        require_asked(state, queue, &component.alternatives, self.access.is_operator())?;
        let job = Wanderer {
            owner: self.owner,
            account: component.account.as_deref(),
            priority: component.priority.unwrap_or_default(),
            alternatives: &component.alternatives,
            tasks,
        };
        passing::require_passable(state, queue, &job, is_whole)?;
        if component.deadline.is_some_and(|deadline| deadline <= self.now) {
            return Err(invalid("deadline: has passed already"));
        }
        require_reservation(state, component.reservation.as_deref(), self.owner, component.account.as_deref())?;
        require_holds(self.access, component)?;
        complete_dependencies(self.access, &mut component.dependencies, self.own.map(|job| job.id), is_array)
    }

    /// Whether the components of a job can ever run at the same time.
    fn require_fit_together(&self, spec: &JobSpec) -> Result<(), Refusal> {
        if spec.components.len() < 2 {
            return Ok(());
        }
        let wishes = spec.components.iter().map(|component| {
            let queue = find_queue(self.state, component.queue.as_deref().unwrap_or_default())?;
            Ok(Wish { queue: &queue.spec, alternatives: &component.alternatives })
        });
        require_fit_together(self.state, &wishes.collect::<Result<Vec<_>, Refusal>>()?)
    }

    fn fits_as_before(&self, queue: &str, alternatives: &[Alternative]) -> bool {
        self.fitting.iter().any(|(name, fitting)| name == queue && fitting == alternatives)
    }

    /// A few are enough: searching many would cost more than it saves.
    fn remember_fitting(&mut self, queue: &str, alternatives: &[Alternative]) {
        if self.fitting.len() < MAX_FITTING {
            self.fitting.push((queue.to_owned(), alternatives.to_vec()));
        }
    }

    fn check_queue_limits(&mut self, spec: &JobSpec) -> Result<(), Refusal> {
        for component in &spec.components {
            let queue = find_queue(self.state, component.queue.as_deref().unwrap_or_default())?;
            let is_inside = self.own.is_some_and(|job| job.queues().any(|name| **name == *queue.spec.name));
            let Some(most) = queue.spec.max_jobs.filter(|_| !is_inside) else { continue };
            let entering = self.queued.entry(queue.spec.name.clone()).or_default();
            *entering += tasks_of(spec);
            require_queue_room(self.state, queue, most, *entering)?;
        }
        Ok(())
    }
}

fn default_name(component: &Component) -> String {
    match &component.launch.program {
        Program::Tasks { argv } => {
            let command = argv.first().map_or("", String::as_str);
            let base = command.rsplit('/').next().unwrap_or(command);
            let printable: String = base.chars().filter(|char| !char.is_control()).take(250).collect();
            if printable.is_empty() { "job".into() } else { printable }
        }
        _ => "job".into(),
    }
}

/// Whether excluded nodes exist: an unknown name must be a mistake. Nodes excluded before may have been removed since.
pub(crate) fn require_known_exclusions<'a>(
    state: &State,
    alternatives: &'a [Alternative],
    before: &'a [Alternative],
) -> Result<(), Refusal> {
    let excluded =
        |ways: &'a [Alternative]| ways.iter().flat_map(|way| &way.requests).flat_map(|of| &of.excluded_nodes);
    let is_new = |name: &&String| excluded(before).all(|old| old != *name);
    match excluded(alternatives).filter(is_new).find(|name| state.node_by_name(name).is_none()) {
        Some(unknown) => Err(invalid(format!("it excludes node `{}`, which does not exist", validate::shown(unknown)))),
        None => Ok(()),
    }
}

/// Whether the cluster as configured can ever serve all of these at the same time.
pub(crate) fn require_fit_together(state: &State, wishes: &[Wish]) -> Result<(), Refusal> {
    match fits::never_fit_together(state, wishes) {
        Some(why) => Err(invalid(format!("{}{why}", fits::NEVER))),
        None => Ok(()),
    }
}

/// Whether a reservation that a job names exists and admits it.
pub(crate) fn require_reservation(
    state: &State,
    name: Option<&str>,
    owner: &Owner,
    account: Option<&str>,
) -> Result<(), Refusal> {
    let Some(name) = name else { return Ok(()) };
    let reservation = state.reservation(name);
    let reservation =
        reservation.ok_or_else(|| not_found(format!("reservation `{}` does not exist", validate::shown(name))))?;
    if reservation.admits(&owner.user, account) {
        return Ok(());
    }
    let message = format!("user {} may not use reservation `{name}`", owner.user);
    Err(refuse(RefusalCode::PermissionDenied, message))
}

fn require_holds(access: &Access, component: &Component) -> Result<(), Refusal> {
    if component.holds.operator {
        access.require_operator("set operator holds")?;
    }
    if component.holds.system {
        access.require_administrator("set system holds")?;
    }
    Ok(())
}
