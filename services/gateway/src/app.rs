//! State that all requests share.

use crate::{
    Config,
    agents::{archives::Archives, tidying, tokens::AgentTokens},
    budgets::Budgets,
    caller::Callers,
    error::ApiError,
    gauges::Gauges,
    groups,
    ledgers::Ledgers,
    listings::Listings,
    live::Live,
    metrics::Metrics,
    own_job::{self, Proofs},
    planning::Planning,
    reader::Reader,
    statistics::Counts,
    steps::StepBook,
};
use anyhow::Context as _;
use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, request::Parts},
};
use muster_bus::{LedgerClient, Projection, SharedBus};
use muster_domain::State as ClusterState;
use muster_schemas::{
    CommandId, JobId, Timestamp,
    command::{Answer, Command, CommandEnvelope, Reply},
    event::{Actor, Owner, TraceContext},
    job::JobSpec,
    views::{CommandAnswer, ErrorCode},
};
use muster_telemetry::trace;
use std::{ops::Deref, sync::Arc, time::Instant};
use tokio::{sync::Semaphore, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

const IDEMPOTENCY_KEY: &str = "idempotency-key";
const MAX_KEY_BYTES: usize = 255;
/// The number of plans made for queries at a time; further queries wait.
const MAX_PLANNINGS: usize = 2;
/// The most lists of few named jobs that are made at a time.
const MAX_SHORT_LISTS: usize = 4;
const TRACEPARENT: &str = "traceparent";

/// State that all requests share.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

/// The parts of [`App`].
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) bus: SharedBus,
    pub(crate) ledger: LedgerClient,
    pub(crate) reader: Arc<Reader>,
    pub(crate) ledgers: Ledgers,
    pub(crate) listings: Listings,
    pub(crate) planning: Planning,
    pub(crate) steps: StepBook,
    pub(crate) live: Arc<Live>,
    pub(crate) counts: Counts,
    pub(crate) callers: Callers,
    pub(crate) proofs: Proofs,
    pub(crate) budgets: Budgets,
    /// Taken while a large body is parsed: that needs several times its memory.
    pub(crate) large_parsings: Arc<Semaphore>,
    /// Taken while the list of few named jobs is made.
    pub(crate) short_lists: Arc<Semaphore>,
    /// Taken while the log is verified: that is a lot of work for the ledger.
    pub(crate) verifications: Arc<Semaphore>,
    /// Taken while a plan is made: that may occupy a core for a while.
    pub(crate) plannings: Arc<Semaphore>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) gauges: Gauges,
    pub(crate) shutdown: CancellationToken,
    /// The tokens of agents, if agents are let in.
    pub(crate) agents: Option<AgentTokens>,
    pub(crate) archives: Archives,
}

impl Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl App {
    /// Loads the state and everything else that requests need.
    pub(crate) async fn open(bus: SharedBus, config: Config, shutdown: CancellationToken) -> anyhow::Result<Self> {
        let budgets = Budgets::new(&config);
        let callers = Callers::new(config.tokens_file.as_deref(), budgets.clone())?;
        let agents = config.agents_file.as_deref().map(AgentTokens::open).transpose()?;
        let archives = Archives::new(config.agents_folder.clone(), config.max_archive_bytes);
        let projection = Projection::open(bus.clone()).await.context("the gateway cannot get the state")?;
        let head = projection.read(ClusterState::sequence);
        let ledger = LedgerClient::new(bus.clone());
        let reader = Arc::new(Reader::new(bus.clone(), projection));
        Ok(Self(Arc::new(Shared {
            config,
            bus,
            ledger,
            reader,
            ledgers: Ledgers::default(),
            listings: Listings::start().context("the gateway cannot start its threads for lists")?,
            planning: Planning::default(),
            steps: StepBook::default(),
            live: Arc::new(Live::new(head)),
            counts: Counts::new(Timestamp::now()),
            callers,
            proofs: Proofs::default(),
            budgets,
            large_parsings: Arc::new(Semaphore::new(1)),
            short_lists: Arc::new(Semaphore::new(MAX_SHORT_LISTS)),
            verifications: Arc::new(Semaphore::new(1)),
            plannings: Arc::new(Semaphore::new(MAX_PLANNINGS)),
            metrics: Arc::new(Metrics::new()),
            gauges: Gauges::new(),
            shutdown,
            agents,
            archives,
        })))
    }

    /// Runs the background work.
    pub(crate) fn run_background(&self) -> JoinHandle<()> {
        let app = self.clone();
        tokio::spawn(async move {
            let events = app.live.pump(app.bus.clone(), app.reader.clone(), &app.counts);
            let gauges = app.gauges.keep(&app.reader);
            let tidying = tidying::keep_tidy(&app.archives, &app.reader, &app.ledger);
            let forgetting = async { tokio::join!(app.reader.forget_past_states(), app.planning.forget()) };
            tokio::join!(events, gauges, forgetting, tidying, app.ledgers.listen(&app.bus));
        })
    }

    /// Passes a command on to the ledger. Its answer is on disk, and every later query sees it.
    pub(crate) async fn command(&self, asked: Asked, command: Command) -> Result<(Answer, Reply), ApiError> {
        let mut answer = self.answer(asked, command).await?;
        let reply = std::mem::replace(&mut answer.result, Ok(Reply::Done))?;
        Ok((answer, reply))
    }

    /// The same, with a refusal as part of the answer: it says when it was given.
    pub(crate) async fn answer(&self, asked: Asked, command: Command) -> Result<Answer, ApiError> {
        let span = tracing::debug_span!("gateway.command", job = tracing::field::Empty);
        let span = trace::in_trace(span, asked.trace);
        if let Some(job) = asked.own_job {
            own_job::check(job, &command)?;
        }
        let envelope = CommandEnvelope {
            id: asked.id,
            actor: Actor::User((*asked.owner).clone()),
            trace: trace::root_context(&span, asked.trace),
            command,
        };
        let asked_at = Instant::now();
        let answer = self.ledger.send(&envelope).instrument(span.clone()).await?;
        self.metrics.command_seconds.record(asked_at.elapsed().as_secs_f64(), &[]);
        self.reader.note_answer(answer.sequence);
        if let Ok(Reply::Submitted(jobs) | Reply::Jobs(jobs)) = &answer.result
            && let [job] = jobs[..]
        {
            span.record("job", tracing::field::display(job));
        }
        Ok(answer)
    }

    /// Passes on a command about jobs.
    pub(crate) async fn jobs_command(
        &self,
        asked: Asked,
        command: Command,
    ) -> Result<axum::Json<CommandAnswer>, ApiError> {
        let (answer, reply) = self.command(asked, command).await?;
        let (jobs, is_judged) = match reply {
            Reply::Submitted(jobs) => {
                let is_judged = |state: &ClusterState| state.filter_settings().submission.is_some();
                (jobs, self.reader.projection().read(is_judged))
            }
            Reply::Jobs(jobs) => (jobs, false),
            _ => (Vec::new(), false),
        };
        Ok(axum::Json(CommandAnswer { sequence: answer.sequence, jobs, is_judged }))
    }

    /// Whether a caller may see everything of everybody's jobs.
    pub(crate) fn is_operator(&self, caller: &Owner) -> bool {
        let own = nix::unistd::geteuid().as_raw();
        caller.uid == 0
            || caller.uid == own
            || self.reader.projection().read(|state| {
                let settings = state.settings();
                settings.operators.contains(&caller.user) || settings.administrators.contains(&caller.user)
            })
    }
}

/// The caller is a process of this job, and may only do what concerns this job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnJob(pub(crate) JobId);

/// The sender of the request.
#[derive(Clone, Debug)]
pub(crate) struct Caller(pub(crate) Arc<Owner>);

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let unknown = || ApiError::new(ErrorCode::Unauthenticated, "the caller is unknown");
        parts.extensions.get::<Self>().cloned().ok_or_else(unknown)
    }
}

/// The sender of a command, its id, and its trace, if it has one.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    owner: Arc<Owner>,
    id: CommandId,
    trace: TraceContext,
    /// Only requests about this job are allowed.
    own_job: Option<JobId>,
}

impl Asked {
    /// The user who asks.
    pub(crate) fn caller(&self) -> &Owner {
        &self.owner
    }

    /// The same with the group that jobs to submit name, for which they count (PBS-Q-02).
    ///
    /// # Errors
    /// They name different groups.
    pub(crate) async fn in_group_of(self, jobs: &[JobSpec]) -> Result<Self, ApiError> {
        Ok(Self { owner: groups::effective(self.owner, jobs).await?, ..self })
    }

    /// Another attempt of the same request: the first is the command itself.
    pub(crate) fn attempt(&self, number: u32) -> Self {
        let id = match number {
            0 => self.id,
            number => CommandId::derived(&[b"attempt", self.id.0.as_bytes(), &number.to_le_bytes()]),
        };
        Self { id, ..self.clone() }
    }
}

impl<S: Sync> FromRequestParts<S> for Asked {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Caller(owner) = Caller::from_request_parts(parts, state).await?;
        let id = command_id(&parts.headers, &owner)?;
        let given = parts.headers.get(TRACEPARENT).and_then(|value| value.to_str().ok());
        let trace = given.and_then(TraceContext::from_traceparent).unwrap_or_default();
        let own_job = parts.extensions.get::<OwnJob>().map(|own| own.0);
        Ok(Self { owner, id, trace, own_job })
    }
}

/// The id of a command. If two users choose the same key, they mean different commands.
fn command_id(headers: &HeaderMap, owner: &Owner) -> Result<CommandId, ApiError> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(CommandId::new_now()) };
    let key = key.as_bytes();
    if key.is_empty() || key.len() > MAX_KEY_BYTES {
        return Err(ApiError::malformed(format!("`Idempotency-Key` has 1 to {MAX_KEY_BYTES} characters")));
    }
    Ok(CommandId::derived(&[b"http", &owner.uid.to_le_bytes(), key]))
}

/// The answer to a command.
pub(crate) type Answered = Result<axum::Json<CommandAnswer>, ApiError>;
