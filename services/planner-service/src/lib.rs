//! The planner as a service: follows the log, plans when something happened that can change the plan, and asks the ledger
//! to make it so.

use anyhow::Context as _;
use futures::FutureExt as _;
use muster_bus::{BusError, Feed, LedgerClient, SharedBus, load_snapshot};
use muster_domain::State;
use muster_planner::{Order, Plan, Policy, View, plan};
use muster_schemas::{
    JobId, Sequence,
    command::{Answer, Command, Query, QueryAnswer, RefusedStart, Reply},
    event::{Actor, Event, Record, TraceContext, WaitingJob},
};
use muster_telemetry::{
    metrics::{self, Counter, Gauge, Histogram},
    trace,
};
use serde::Deserialize;
use std::{
    collections::BTreeSet,
    sync::LazyLock,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

static CYCLE_SECONDS: LazyLock<Histogram<f64>> =
    LazyLock::new(|| metrics::duration_seconds("muster_planner_cycle_seconds", "Time to make one plan."));
static STARTS: LazyLock<Counter<u64>> =
    LazyLock::new(|| metrics::counter("muster_planner_starts_total", "Starts asked of the ledger."));
static REFUSED: LazyLock<Counter<u64>> =
    LazyLock::new(|| metrics::counter("muster_planner_refused_starts_total", "Starts that the ledger refused."));
static WAITING: LazyLock<Gauge<i64>> = LazyLock::new(|| {
    metrics::gauge("muster_planner_waiting_jobs", "Jobs that wait with open gates; an array counts as one.")
});

/// Settings of the planner.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// At most so many starts go to the ledger in one command, 1 to 100,000; more follow in the next.
    pub max_starts: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_starts: Policy::default().max_starts }
    }
}

/// Plans until `shutdown`. The ledger need not be there yet when this says that it is `ready`.
///
/// # Errors
/// The bus is closed or cannot be used.
pub async fn serve(
    bus: SharedBus,
    config: Config,
    ready: oneshot::Sender<()>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let policy = Policy { max_starts: config.max_starts.clamp(1, 100_000) };
    let _ = ready.send(());
    let work = async {
        loop {
            let mut planner = Planner::open(bus.clone(), policy).await?;
            match planner.run().await {
                Err(BusError::Refused(refusal)) => {
                    tracing::warn!("the records that come next were archived, beginning with a snapshot: {refusal}");
                }
                result => return result,
            }
        }
    };
    let result = shutdown.run_until_cancelled(work).await.unwrap_or(Ok(()));
    result.context("the planner cannot follow the log")
}

/// After the ledger refused a whole plan, or did not answer, wait so long before the next one.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(500);

struct Planner {
    ledger: LedgerClient,
    feed: Feed,
    policy: Policy,
    state: State,
    order: Order,
    /// Jobs whose start was refused, until something happens that can change the plan.
    left_out: BTreeSet<JobId>,
    is_plan_due: bool,
}

impl Planner {
    /// Waits for the ledger and begins with its newest snapshot.
    async fn open(bus: SharedBus, policy: Policy) -> Result<Self, BusError> {
        let ledger = LedgerClient::new(bus.clone());
        let state = load_snapshot(&ledger, None).await?;
        Ok(Self {
            feed: Feed::open(bus, state.sequence().next()).await?,
            ledger,
            policy,
            order: Order::of(&state),
            state,
            left_out: BTreeSet::new(),
            is_plan_due: true,
        })
    }

    async fn run(&mut self) -> Result<(), BusError> {
        if let Ok(QueryAnswer::Head { last, .. }) = self.ledger.query(&Query::Head).await {
            self.follow_to(last).await?;
        }
        loop {
            while let Some(commit) = self.feed.next().now_or_never() {
                self.apply(&commit?.records);
            }
            if self.is_plan_due {
                self.cycle().await?;
            } else {
                let commit = self.feed.next().await?;
                self.apply(&commit.records);
            }
        }
    }

    async fn follow_to(&mut self, sequence: Sequence) -> Result<(), BusError> {
        while self.state.sequence() < sequence {
            let commit = self.feed.next().await?;
            self.apply(&commit.records);
        }
        Ok(())
    }

    fn apply(&mut self, records: &[Record]) {
        for record in records {
            self.order.apply(&mut self.state, record);
            if can_change_plan(&record.event) {
                self.is_plan_due = true;
                self.left_out.clear();
            }
        }
    }

    /// One plan, from the present state to the answer of the ledger. The next plan sees what came of it.
    async fn cycle(&mut self) -> Result<(), BusError> {
        self.is_plan_due = false;
        let began = Instant::now();
        let view = View { state: &self.state, order: &self.order, left_out: &self.left_out };
        let plan = plan(&view, &self.policy);
        CYCLE_SECONDS.record(began.elapsed().as_secs_f64(), &[]);
        WAITING.record(i64::try_from(self.order.len()).unwrap_or(i64::MAX), &[]);
        self.is_plan_due = plan.is_cut_short;
        let reasons = changed_reasons(&self.state, &plan);
        if plan.starts.is_empty() && reasons.is_empty() {
            return Ok(());
        }
        match self.commit(plan, reasons).await {
            Ok(sequence) => self.follow_to(sequence).await,
            Err(error) => {
                tracing::warn!("the plan was not committed: {error:#}");
                self.is_plan_due = true;
                tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
                Ok(())
            }
        }
    }

    async fn commit(&mut self, plan: Plan, reasons: Vec<WaitingJob>) -> anyhow::Result<Sequence> {
        let spans = self.start_spans(&plan);
        STARTS.add(plan.starts.len() as u64, &[]);
        let command = Command::CommitPlan { starts: plan.starts, reasons };
        let Answer { sequence, result } = self.ledger.command(Actor::Planner, TraceContext::default(), command).await?;
        drop(spans);
        if let Reply::Planned(refused) = result? {
            self.note_refused(&refused);
        }
        Ok(sequence)
    }

    fn note_refused(&mut self, refused: &[RefusedStart]) {
        REFUSED.add(refused.len() as u64, &[]);
        for RefusedStart { job, reason } in refused {
            tracing::debug!(%job, reason, "start refused");
            // A task that has never started is not in the order itself, its array is.
            self.left_out.extend([*job, job.whole()]);
        }
    }

    /// The planner's part in the trace of each job that starts: from the plan to the ledger's answer.
    fn start_spans(&self, plan: &Plan) -> Vec<tracing::Span> {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return Vec::new();
        }
        let job_of = |id: JobId| self.state.job(id).or_else(|| self.state.job(id.whole()));
        let span = |id: JobId| Some(trace::in_trace(tracing::debug_span!("plan", job = %id), job_of(id)?.trace));
        plan.starts.iter().filter_map(|start| span(start.job)).collect()
    }
}

/// The reasons that the log does not have yet.
fn changed_reasons(state: &State, plan: &Plan) -> Vec<WaitingJob> {
    let known = |waiting: &WaitingJob| {
        let job = state.job(waiting.job);
        job.is_some_and(|job| job.planner_reason.as_deref() == Some(&waiting.reason))
    };
    plan.reasons.iter().filter(|waiting| !known(waiting)).cloned().collect()
}

/// Whether the event can let something start that could not start before, or make a reason untrue.
fn can_change_plan(event: &Event) -> bool {
    match event {
        // The planner's own doing.
        Event::RunAllocated { .. } | Event::JobsWaiting { .. } | Event::StartRefused { .. } => false,
        Event::Checkpoint { .. } | Event::RangeArchived { .. } | Event::NotificationDone { .. } => false,
        Event::RunNumbersRaised { .. } => false,
        Event::RunNodeStarted { .. } | Event::RunStopping { .. } | Event::RunNodeEnded { .. } => false,
        Event::JobSuspended { .. } | Event::JobResumed { .. } | Event::JobSignalled { .. } => false,
        Event::StepStarted { .. } | Event::StepNodeEnded { .. } | Event::StepEnded { .. } => false,
        _ => true,
    }
}
