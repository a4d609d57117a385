//! Queries about jobs.

use crate::{
    app::{App, Caller},
    budgets::Admitted,
    error::ApiError,
    live,
    packing::{Packed, ReadsGzip},
    params::{At, MomentParams, NoParams, Params, Path, job_id, list, words},
    reader::{Source, unexpected},
    views::{JobViews, Private, cancels, runs, task_views},
};
use axum::{
    body::Bytes,
    extract::{OriginalUri, State},
    http::header,
    response::IntoResponse,
};
use muster_domain::{
    OrderHead, State as ClusterState,
    dependencies::{Condition, ConditionStatus},
    jobs::{Component, Job},
};
use muster_schemas::{
    JobId, Sequence, Timestamp,
    command::{Query, QueryAnswer},
    copies::FileCopies,
    event::{Event, OutputFiles, Owner, Record},
    job::{Dependencies, JobSpec, JobState, Launch, Notification, Program, WaitReason},
    resources::Alternative,
    views::{DependencyWord, ErrorBody, ErrorCode, JobDetail, JobView, JobsPage, OutcomeWord, TaskView},
    walltimes::WalltimeAsked,
};
use serde::Deserialize;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, time::Instant};
use utoipa::{IntoParams, ToSchema};

/// Jobs in a page if the caller does not say how many.
const DEFAULT_LIMIT: u32 = 1_000;
const MAX_LIMIT: u32 = 10_000;
const MAX_WAIT_SECONDS: u32 = 300;
/// The number of views made in one look at the state: a millisecond or less.
const PIECE_VIEWS: usize = 256;
/// The number of jobs skipped in one look.
const PIECE_LOOKS: usize = 4_096;
/// The number of ids handled in one look.
const PIECE_IDS: usize = 64;

/// Which jobs are wanted. All that is given must match.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct JobsParams {
    /// These jobs, arrays (with those of their tasks that have started) or tasks, separated by commas. The
    /// number of a component or task stands for its job or for the task.
    #[serde(default, deserialize_with = "list")]
    #[param(value_type = Option<String>)]
    id: Vec<JobId>,
    /// Owner's login name.
    user: Option<String>,
    /// Queue.
    queue: Option<String>,
    /// Account.
    account: Option<String>,
    /// Job name.
    name: Option<String>,
    /// One of these states, separated by commas; left out, any but finished, or any at all if ids are given.
    #[serde(default, deserialize_with = "words")]
    #[param(value_type = Option<String>)]
    state: Vec<JobState>,
    /// Maximum number of jobs: 1 to 10,000; 1,000 if left out.
    limit: Option<u32>,
    /// Only jobs after this one in the order of ids.
    after: Option<JobId>,
}

/// The attributes that jobs are selected by.
struct Traits<'a> {
    owner: &'a str,
    queue: &'a str,
    account: Option<&'a str>,
    name: &'a str,
    state: JobState,
}

impl<'a> Traits<'a> {
    fn of_job(state: &ClusterState, job: &'a Job) -> Self {
        let lead = job.lead();
        let (owner, account) = (&job.owner.user, lead.account.as_deref());
        Self { owner, queue: &lead.queue, account, name: &job.name, state: state.job_state(job) }
    }

    fn of_view(view: &'a JobView) -> Self {
        let (owner, account) = (&view.owner, view.account.as_deref());
        Self { owner, queue: &view.queue, account, name: &view.name, state: view.state }
    }
}

impl JobsParams {
    /// Unfinished jobs with this owner and name, optionally finished ones as well.
    pub(super) fn all(user: Option<String>, name: Option<String>, with_finished: bool) -> Self {
        let state = if with_finished { JobState::ALL.to_vec() } else { Vec::new() };
        Self { user, name, state, ..Self::default() }
    }

    fn takes(&self, job: &Traits<'_>) -> bool {
        let equal = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|wanted| wanted == is);
        let state = match self.state.is_empty() {
            true => !self.id.is_empty() || job.state != JobState::Finished,
            false => self.state.contains(&job.state),
        };
        state
            && equal(&self.user, job.owner)
            && equal(&self.queue, job.queue)
            && equal(&self.account, job.account.unwrap_or_default())
            && equal(&self.name, job.name)
    }

    /// Makes views of the matching jobs, in order of their ids, after `after`, up to a maximum. It works in pieces
    /// between which the state continues, so that changes of the state never wait for long. Each job is as of the
    /// moment of its piece, and none that exists throughout is missing or duplicated. Returns the first of these
    /// moments.
    pub(super) fn each(
        &self,
        source: &Source,
        most: usize,
        mut take: impl FnMut(JobView) -> Result<(), ApiError>,
    ) -> Result<(Sequence, Timestamp), ApiError> {
        if !self.id.is_empty() {
            return self.each_named(source, most, take);
        }
        let mut pieces = Pieces { after: self.after, head: OrderHead::default(), left: most };
        let mut moment = None;
        while pieces.left > 0 {
            let (piece, now) = source.read(|state| (pieces.next(self, state), (state.sequence(), state.time())));
            moment.get_or_insert(now);
            // Some kernels let a thread run until their next tick, up to 4 ms, whoever waits for the processor.
            std::thread::yield_now();
            piece.views.into_iter().try_for_each(&mut take)?;
            if piece.is_last {
                break;
            }
            std::thread::yield_now();
        }
        Ok(moment.unwrap_or_default())
    }

    /// Whether the named jobs are few. Their list is made at once: it does not wait behind long ones.
    fn is_short(&self, source: &Source) -> bool {
        let tasks = |state: &ClusterState, id: &JobId| {
            state.job(id.whole()).and_then(|job| job.array.as_ref()).map_or(1, |array| array.tasks)
        };
        let all = |state: &ClusterState| self.id.iter().fold(0_u64, |sum, id| sum.saturating_add(tasks(state, id)));
        source.read(all) <= PIECE_VIEWS as u64
    }

    /// The same for jobs that are requested by their ids.
    fn each_named(
        &self,
        source: &Source,
        most: usize,
        take: impl FnMut(JobView) -> Result<(), ApiError>,
    ) -> Result<(Sequence, Timestamp), ApiError> {
        let mut head = OrderHead::default();
        let (mut views, mut moment): (Vec<JobView>, _) = (Vec::new(), None);
        for ids in self.id.chunks(PIECE_IDS) {
            source.read(|state| {
                moment.get_or_insert((state.sequence(), state.time()));
                let of = JobViews::new(state, source.known_head(state).unwrap_or(head));
                views.extend(ids.iter().flat_map(|id| named(state, &of, *id)));
                head = of.into_head();
                source.keep_head(state, head);
            });
        }
        views.sort_by_key(|view| view.id);
        views.dedup_by_key(|view| view.id);
        let is_behind = |id: JobId| self.after.is_none_or(|after| id > after);
        let matching = views.into_iter().filter(|view| is_behind(view.id) && self.takes(&Traits::of_view(view)));
        matching.take(most).try_for_each(take)?;
        Ok(moment.unwrap_or_default())
    }

    fn candidates<'a>(&self, state: &'a ClusterState, after: Option<JobId>) -> Box<dyn Iterator<Item = &'a Job> + 'a> {
        match &self.user {
            Some(user) => Box::new(state.jobs_of_after(user, after)),
            None => Box::new(state.jobs_after(after)),
        }
    }
}

/// The progress of a list.
struct Pieces {
    after: Option<JobId>,
    head: OrderHead,
    /// The number of views still allowed.
    left: usize,
}

/// A piece of a list.
struct Piece {
    views: Vec<JobView>,
    is_last: bool,
}

impl Pieces {
    /// The next matching jobs. Most jobs may be skipped: a view is made only of those that match.
    fn next(&mut self, params: &JobsParams, state: &ClusterState) -> Piece {
        let reasons = JobViews::new(state, self.head);
        let (mut views, mut looked_at) = (Vec::new(), 0);
        let mut is_last = true;
        for job in params.candidates(state, self.after) {
            let is_full = views.len() >= PIECE_VIEWS || looked_at >= PIECE_LOOKS;
            // An array and its tasks show one moment, unless that takes long.
            let is_of_last = self.after.is_some_and(|last| last.number == job.id.number) && looked_at < 4 * PIECE_LOOKS;
            if views.len() >= self.left || is_full && !is_of_last {
                is_last = false;
                break;
            }
            looked_at += 1;
            self.after = Some(job.id);
            if params.takes(&Traits::of_job(state, job)) {
                views.push(reasons.of(job));
            }
        }
        self.head = reasons.into_head();
        self.left -= views.len();
        Piece { views, is_last }
    }
}

/// A job or task; an array together with those of its tasks that have started.
fn named(state: &ClusterState, views: &JobViews<'_>, id: JobId) -> Vec<JobView> {
    let meant = if id.index.is_none() { state.job_of_number(id.number) } else { None };
    let id = meant.unwrap_or(id);
    match id.index {
        None => state.job_with_tasks(id.number).map(|job| views.of(job)).collect(),
        Some(_) => view_of(state, views, id).into_iter().collect(),
    }
}

fn view_of(state: &ClusterState, views: &JobViews<'_>, id: JobId) -> Option<JobView> {
    if let Some(job) = state.job(id) {
        return Some(views.of(job));
    }
    views.of_task(state.job(id.whole())?, id.index?)
}

/// Resolves an id: the number of a component or of a task of an array stands for the job or the task, even if the state
/// has forgotten it (SL-C-18).
pub(super) async fn meant(app: &App, past: Option<&ClusterState>, id: JobId) -> Result<JobId, ApiError> {
    if id.index.is_some() {
        return Ok(id);
    }
    let look = |state: &ClusterState| {
        let is_given = id.number < state.next_job_number();
        (is_given, state.job_of_number(id.number), state.task_numbers_from())
    };
    let tasks_from = match past.map_or_else(|| app.reader.projection().read(look), look) {
        (_, Some(known), _) => return Ok(known),
        (false, None, _) => return Ok(id),
        (true, None, tasks_from) => tasks_from,
    };
    match app.ledger.query(&Query::JobOfNumber { number: id.number, tasks_from }).await? {
        QueryAnswer::JobOfNumber(found) => Ok(found.unwrap_or(id)),
        other => Err(unexpected(&other)),
    }
}

/// The request of its first component.
fn alternatives_of(state: &ClusterState, id: JobId) -> Arc<[Alternative]> {
    state.job(id).map_or_else(Arc::default, |job| job.lead().shape.alternatives.clone())
}

fn tasks_of(state: &ClusterState, id: JobId) -> Vec<TaskView> {
    state.job(id).map(task_views).unwrap_or_default()
}

/// List jobs
#[utoipa::path(get, path = "/v1/jobs", tag = "jobs", params(MomentParams, JobsParams),
    responses((status = 200, body = JobsPage), (status = "default", body = ErrorBody)))]
pub(crate) async fn list_jobs(
    State(app): State<App>,
    Admitted(admission): Admitted,
    OriginalUri(uri): OriginalUri,
    reads_gzip: ReadsGzip,
    At(moment, params): At<JobsParams>,
) -> Result<impl IntoResponse, ApiError> {
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ApiError::invalid(format!("`limit` is {limit}, and must be 1 to {MAX_LIMIT}")));
    }
    let source = app.reader.source(moment).await?;
    let params = Arc::new(params);
    let json = match short(&app.short_lists, &params, &source, limit as usize).await? {
        Some(list) => Packed::of(list, reads_gzip),
        None => {
            let make = move || page(&params, &source, limit as usize);
            app.listings.get(&admission, &uri, reads_gzip, make).await?
        }
    };
    Ok(([(header::CONTENT_TYPE, "application/json")], json))
}

/// The list of few named jobs, made at once on a thread that may wait. `None` if it is not such a list.
async fn short(
    turns: &Arc<Semaphore>,
    params: &Arc<JobsParams>,
    source: &Source,
    limit: usize,
) -> Result<Option<Bytes>, ApiError> {
    if !(1..=PIECE_IDS).contains(&params.id.len()) {
        return Ok(None);
    }
    let stopping = || ApiError::unavailable("the gateway is stopping");
    let turn = turns.clone().acquire_owned().await.map_err(|_| stopping())?;
    let (params, source) = (params.clone(), source.clone());
    let make = move || {
        // Kept until the list is made, even if nobody waits for it any more.
        let _turn = turn;
        params.is_short(&source).then(|| page(&params, &source, limit)).transpose()
    };
    tokio::task::spawn_blocking(make).await.map_err(|_| stopping())?
}

/// A [`JobsPage`] as JSON.
fn page(params: &JobsParams, source: &Source, limit: usize) -> Result<Bytes, ApiError> {
    let mut jobs = Vec::new();
    let (sequence, time) = params.each(source, limit + 1, |view| {
        jobs.push(view);
        Ok(())
    })?;
    let more = jobs.len() > limit;
    jobs.truncate(limit);
    let next = jobs.last().map(|view| view.id).filter(|_| more);
    let json = serde_json::to_vec(&JobsPage { jobs, next, sequence, time });
    json.map(Bytes::from).map_err(|error| ApiError::new(ErrorCode::TooLarge, error.to_string()))
}

/// A job as of a moment, and the last record that may be used for it.
pub(super) struct Found {
    pub(super) view: JobView,
    pub(super) up_to: Option<Sequence>,
    /// Its tasks, if it is a list of them.
    pub(super) tasks: Vec<TaskView>,
    /// The request of its first component.
    pub(super) alternatives: Arc<[Alternative]>,
    /// Attributes that differ from the submission.
    altered: Altered,
    /// Texts that only its owner and operators may see.
    private: Private,
}

/// Attributes that may differ from the submission.
#[derive(Default)]
struct Altered {
    /// Its attributes; empty ones were removed.
    attributes: BTreeMap<String, String>,
    components: Vec<AlteredComponent>,
    /// Its notifications, if it is known.
    notifications: Option<Vec<Notification>>,
    output: Option<OutputFiles>,
    increase: Option<WalltimeAsked>,
    /// How far its account and owner are above their targets.
    use_share: Option<f64>,
}

/// The same for a component.
struct AlteredComponent {
    class: Option<String>,
    reservation: Option<String>,
    deadline: Option<Timestamp>,
    dependencies: Dependencies,
    standing: Vec<Vec<DependencyWord>>,
    alternatives: Arc<[Alternative]>,
}

impl Altered {
    fn of(state: &ClusterState, id: JobId) -> Self {
        let job = state.job(id).or_else(|| state.job(id.whole()));
        let attributes = state.altered_attributes(id);
        Self {
            attributes: attributes.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            components: job.into_iter().flat_map(|job| job.components.iter()).map(AlteredComponent::of).collect(),
            notifications: job.map(|job| job.notifications().to_vec()),
            output: state.altered_output(id).cloned(),
            increase: job.and_then(Job::run).and_then(|run| state.walltime_asked(run)).copied(),
            use_share: job.and_then(|job| state.use_share_of(job, state.time())),
        }
    }

    /// The standing of each dependency, by component.
    fn standing(&self) -> Vec<Vec<Vec<DependencyWord>>> {
        let by_component = || self.components.iter().map(|component| &component.standing);
        if by_component().all(Vec::is_empty) { Vec::new() } else { by_component().cloned().collect() }
    }

    fn apply(self, spec: &mut JobSpec) {
        for (component, altered) in spec.components.iter_mut().zip(self.components) {
            component.class = altered.class;
            component.reservation = altered.reservation;
            component.deadline = altered.deadline;
            component.dependencies = altered.dependencies;
            component.alternatives = altered.alternatives.to_vec();
        }
        if let Some(output) = &self.output {
            spec.components.iter_mut().for_each(|component| output.replace(&mut component.launch));
        }
        if let Some(notifications) = self.notifications {
            spec.notifications = notifications;
        }
        spec.attributes.extend(self.attributes);
        spec.attributes.retain(|_, value| !value.is_empty());
    }
}

impl AlteredComponent {
    fn of(component: &Component) -> Self {
        let named = |name: &Option<Arc<str>>| name.as_deref().map(str::to_owned);
        let extras = component.extras.as_deref();
        let groups = extras.map(|extras| extras.dependencies.as_slice()).unwrap_or_default();
        let group = |group: &Vec<Condition>| group.iter().map(|condition| condition.dependency.clone()).collect();
        Self {
            class: extras.and_then(|extras| named(&extras.class)),
            reservation: extras.and_then(|extras| named(&extras.reservation)),
            deadline: extras.and_then(|extras| extras.deadline),
            dependencies: Dependencies { all_of: groups.iter().map(group).collect() },
            standing: groups.iter().map(|group| group.iter().map(standing).collect()).collect(),
            alternatives: component.shape.alternatives.clone(),
        }
    }
}

fn standing(condition: &Condition) -> DependencyWord {
    match condition.status {
        ConditionStatus::Unmet => DependencyWord::Unmet,
        ConditionStatus::Delayed(_) => DependencyWord::Delayed,
        ConditionStatus::Met => DependencyWord::Met,
        ConditionStatus::Never => DependencyWord::Never,
    }
}

/// Finds a job in the state of the moment, or in the log if it has left the state.
pub(super) async fn find(app: &App, moment: MomentParams, id: JobId) -> Result<Found, ApiError> {
    app.reader.catch_up(moment.wait_seq).await?;
    let past = app.reader.past_of(moment).await?;
    find_in(app, past.as_deref(), id, OrderHead::default()).await
}

/// As [`find`], in a past state, or in the present one, whose head of the order may be known.
pub(super) async fn find_in(
    app: &App,
    past: Option<&ClusterState>,
    id: JobId,
    head: OrderHead,
) -> Result<Found, ApiError> {
    let id = meant(app, past, id).await?;
    let up_to = past.map(ClusterState::sequence);
    let look = |state: &ClusterState| found_in(state, head, id, up_to);
    let found = match past {
        Some(state) => look(state),
        None => app.reader.projection().read(look),
    };
    if let Some(found) = found {
        return Ok(found);
    }
    let unknown = || ApiError::not_found(format!("there is no job {id}"));
    let history = app.reader.job_history(id, up_to).await?;
    let is_end = |record: &&Record| match &record.event {
        Event::JobFinished { job, .. } => *job == id,
        Event::TasksFinished { job, indices, .. } => {
            *job == id.whole() && id.index.is_some_and(|index| indices.contains(index))
        }
        _ => false,
    };
    let end = history.iter().rev().find(is_end).ok_or_else(unknown)?.sequence;
    let state = app.reader.past(end).await?;
    found_in(&state, OrderHead::default(), id, up_to).ok_or_else(unknown)
}

fn found_in(state: &ClusterState, head: OrderHead, id: JobId, up_to: Option<Sequence>) -> Option<Found> {
    let view = view_of(state, &JobViews::new(state, head), id)?;
    let (tasks, alternatives) = (tasks_of(state, id), alternatives_of(state, id));
    let private = Private::of(state, id);
    Some(Found { view, up_to, tasks, alternatives, altered: Altered::of(state, id), private })
}

/// Show a job
#[utoipa::path(get, path = "/v1/jobs/{id}", tag = "jobs",
    params(("id" = String, Path, description = "The job."), MomentParams),
    responses((status = 200, body = JobDetail), (status = "default", body = ErrorBody)))]
pub(crate) async fn show(
    State(app): State<App>,
    Path(id): Path<String>,
    Caller(caller): Caller,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<JobDetail>, ApiError> {
    let id = job_id(&id)?;
    let found = find(&app, moment, id).await?;
    let history = history_of(&app, &found).await?;
    detail(&app, &caller, found, &history).await.map(axum::Json)
}

/// The records of a job that has had runs, or that was cancelled before; those of an array include its tasks, which are
/// also shown separately.
pub(super) async fn history_of(app: &App, found: &Found) -> Result<Vec<Record>, ApiError> {
    let is_cancelled = found.view.outcome.as_ref().is_some_and(|outcome| outcome.outcome == OutcomeWord::Cancelled);
    if found.view.array.is_some() || found.view.runs == 0 && !is_cancelled {
        return Ok(Vec::new());
    }
    app.reader.job_history(found.view.id, found.up_to).await
}

/// Everything about a job that the caller may see.
pub(super) async fn detail(app: &App, caller: &Owner, found: Found, history: &[Record]) -> Result<JobDetail, ApiError> {
    let Found { mut view, tasks, altered, private, .. } = found;
    let mut spec = match app.ledger.query(&Query::JobSpec { job: view.id.whole() }).await? {
        QueryAnswer::JobSpec(spec) => *spec,
        other => return Err(unexpected(&other)),
    };
    let (dependencies, increase) = (altered.standing(), altered.increase);
    let use_share_millionths = altered.use_share.map(|share| (share * 1e6).round() as i64);
    altered.apply(&mut spec);
    let redacted = !may_see_all(app, caller, &view);
    match redacted {
        true => redact(&mut spec),
        false => private.show(&mut view),
    }
    let runs = app.reader.projection().read(|state| runs(history, state));
    let cancels = cancels(history);
    Ok(JobDetail { job: view, spec, redacted, runs, tasks, cancels, dependencies, increase, use_share_millionths })
}

pub(super) fn may_see_all(app: &App, caller: &Owner, view: &JobView) -> bool {
    caller.user == view.owner || app.is_operator(caller)
}

/// Leaves out possible secrets.
fn redact(spec: &mut JobSpec) {
    for component in &mut spec.components {
        // That it is a script is no secret.
        let program = match component.launch.program {
            Program::Script { .. } => Program::Script { text: String::new(), args: Vec::new() },
            _ => Program::None,
        };
        component.launch = Launch { program, ..Launch::default() };
    }
    spec.working_directory.clear();
    spec.environment.clear();
    spec.notifications.clear();
    spec.attributes.clear();
    spec.copies = FileCopies::default();
    spec.staging.iter_mut().for_each(|staging| staging.directives.clear());
}

/// List the events of a job
#[utoipa::path(get, path = "/v1/jobs/{id}/events", tag = "jobs",
    params(("id" = String, Path, description = "The job."), MomentParams),
    responses((status = 200, body = Vec<Object>, description = "CloudEvents, oldest first."),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn events(
    State(app): State<App>,
    Path(id): Path<String>,
    Caller(caller): Caller,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<impl IntoResponse, ApiError> {
    let id = job_id(&id)?;
    app.reader.catch_up(moment.wait_seq).await?;
    let past = app.reader.past_of(moment).await?;
    let id = meant(&app, past.as_deref(), id).await?;
    let up_to = past.map(|state| state.sequence());
    let history = app.reader.job_history(id, up_to).await?;
    if history.is_empty() {
        return Err(ApiError::not_found(format!("there is no job {id}")));
    }
    let causes = app.reader.causes(history.iter().map(|record| record.sequence)).await?;
    let is_owner =
        |record: &Record| matches!(&record.event, Event::JobSubmitted { owner, .. } if owner.user == caller.user);
    let is_operator = app.is_operator(&caller);
    let json = app.reader.projection().read(|state| {
        let job = state.job(id).or_else(|| state.job(id.whole()));
        let is_own = job.map_or_else(|| history.iter().any(is_owner), |job| job.owner.user == caller.user);
        live::json_list(&history, &causes, state, is_own || is_operator)
    });
    Ok(([(header::CONTENT_TYPE, "application/json")], json))
}

/// How long to wait.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct WaitParams {
    /// Maximum time to wait for the answer, 0 to 300 seconds; 60 if left out.
    timeout_seconds: Option<u32>,
    /// The condition to wait for; the end of the job if left out.
    #[serde(default)]
    #[param(inline)]
    until: WaitUntil,
}

/// A condition to wait for. The end of a job always ends the wait.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitUntil {
    /// It is over.
    #[default]
    Over,
    /// The planner has looked at it: it has its resources, or there is a reason why it waits.
    Planned,
    /// It runs on all its nodes.
    Started,
}

impl WaitUntil {
    /// Whether an unfinished job has reached this condition.
    fn has_come(self, state: &ClusterState, job: &Job) -> bool {
        let run = job.run().and_then(|run| state.run(run));
        match self {
            Self::Over => false,
            Self::Planned => run.is_some() || state.wait_reason(job) != Some(WaitReason::NotPlannedYet),
            Self::Started => run.is_some_and(|run| run.started.is_some()),
        }
    }
}

pub(super) fn deadline(timeout_seconds: Option<u32>) -> Result<Instant, ApiError> {
    let seconds = timeout_seconds.unwrap_or(60);
    if seconds > MAX_WAIT_SECONDS {
        return Err(ApiError::invalid(format!("`timeout_seconds` is {seconds}, and must be 0 to {MAX_WAIT_SECONDS}")));
    }
    Ok(Instant::now() + Duration::from_secs(u64::from(seconds)))
}

/// Wait until a job is over, or has reached the requested state
///
/// The answer is the job as it is then, or at the end of the time.
#[utoipa::path(get, path = "/v1/jobs/{id}/wait", tag = "jobs",
    params(("id" = String, Path, description = "The job."), WaitParams),
    responses((status = 200, body = JobView), (status = "default", body = ErrorBody)))]
pub(crate) async fn wait(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(params): Params<WaitParams>,
) -> Result<axum::Json<JobView>, ApiError> {
    let id = job_id(&id)?;
    let deadline = deadline(params.timeout_seconds)?;
    app.reader.catch_up(None).await?;
    let id = meant(&app, None, id).await?;
    let mut changes = app.reader.projection().changes();
    loop {
        changes.borrow_and_update();
        let is_over = app.reader.projection().read(|state| match state.job(id) {
            Some(job) => job.is_finished() || params.until.has_come(state, job),
            None => state
                .job(id.whole())
                .and_then(|job| job.array.as_ref())
                .is_none_or(|array| id.index.is_none_or(|index| !array.remaining.contains(index))),
        });
        if is_over || !changed(&app, &mut changes, deadline).await {
            return Ok(axum::Json(find(&app, MomentParams::default(), id).await?.view));
        }
    }
}

/// Waits for a change of the state; false at the timeout, and when the gateway stops.
pub(super) async fn changed(
    app: &App,
    changes: &mut tokio::sync::watch::Receiver<Sequence>,
    deadline: Instant,
) -> bool {
    tokio::select! {
        changed = changes.changed() => changed.is_ok(),
        () = tokio::time::sleep_until(deadline) => false,
        () = app.shutdown.cancelled() => false,
    }
}
