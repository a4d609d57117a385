//! The filter-runner as a service: takes calls from the work queues, claims them, makes them, and reports their
//! results.
//!
//! ```text
//! queue ──> taker ──> claimer ──(ClaimCalls)──> ledger      what is there is claimed together
//!                        └──> call ──> reporter ──(ReportCalls)──> ledger      and reported together
//! ```
//!
//! Runners are interchangeable and share nothing but the queues. Only a runner that has claimed a call makes it; from
//! the claim on the ledger watches over it, and offers it to others if this runner is silent for too long (HPC-F-85).
//! So whatever happens here, nothing has to be undone.

mod calls;
mod claim;
mod claims;
mod lanes;
mod reports;
mod shared;
mod takers;

use crate::{Descriptions, Runner, RunnerConfig, SetupError};
use anyhow::Context as _;
use claim::Claim;
use lanes::Lanes;
use muster_bus::{LedgerClient, SharedBus, WorkQueue};
use muster_schemas::filter_order::RunnerHeartbeat;
use shared::{Calls, Service};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use takers::Taker;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The time between two signs of life.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(3);
/// The number of parallel requests to each queue: on NATS each takes a round trip.
const TAKERS: usize = 4;
/// The most simultaneous checks: they run no program.
const CHECKS: usize = 64;
/// The most waiting claims and reports; more wait at their source.
const WAITING: usize = 1024;
/// The time for calls in progress to end at a stop. The rest are ended, and other runners make them.
const END_WITHIN: Duration = Duration::from_secs(5);
/// The time for the ledger to take the last reports at a stop.
const REPORT_WITHIN: Duration = Duration::from_secs(5);

/// Distinguishes the runners of one process.
static RUNNERS: AtomicU64 = AtomicU64::new(0);

/// Runs filters until `shutdown`. `ready` is told once the runner takes calls.
///
/// # Errors
/// Filters cannot be run on this machine, or the bus is closed.
pub async fn serve(
    bus: SharedBus,
    config: RunnerConfig,
    descriptions: Arc<dyn Descriptions>,
    ready: oneshot::Sender<()>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let service = Arc::new(Service {
        name: name(&config),
        ledger: LedgerClient::new(bus.clone()),
        max_payload_bytes: bus.max_payload_bytes(),
        slots: Arc::new(Semaphore::new(config.slots.clamp(1, Semaphore::MAX_PERMITS))),
        waiting: AtomicUsize::new(0),
        checks: Arc::new(Semaphore::new(CHECKS)),
        lanes: Lanes::new(config.persistent_processes),
        calls: Calls::default(),
        descriptions,
        runner: runner(config)?,
    });
    let (claims, to_claim) = mpsc::channel::<Claim>(WAITING);
    let (reports, to_report) = mpsc::channel(WAITING);

    let taking = TaskTracker::new();
    for _ in 0..TAKERS {
        for queue in [WorkQueue::FILTERS, WorkQueue::CHECKS] {
            let items = bus.worker(&queue).await.context("the filter-runner cannot work on its queue")?;
            let starts_programs = queue == WorkQueue::FILTERS;
            let taker = Taker { service: Arc::clone(&service), items, claims: claims.clone(), starts_programs };
            taking.spawn(until(shutdown.clone(), taker.run()));
        }
    }
    drop(claims);
    taking.spawn(until(shutdown.clone(), heartbeats(Arc::clone(&service))));
    let (ended, broken_off) = (TaskTracker::new(), CancellationToken::new());
    let making =
        calls::Making { service: Arc::clone(&service), reports, tasks: ended.clone(), stop: broken_off.clone() };
    // It ends with the takers, so that nothing is claimed at the end but never made.
    taking.spawn(claims::run(making, to_claim));
    let reporter = tokio::spawn(reports::run(Arc::clone(&service), to_report));
    let _ = ready.send(());

    shutdown.cancelled().await;
    taking.close();
    taking.wait().await;
    stop(&ended, &broken_off, reporter).await;
    Ok(())
}

fn runner(config: RunnerConfig) -> Result<Result<Runner, String>, SetupError> {
    let may_lack_programs = config.may_lack_programs;
    match Runner::new(config) {
        Ok(runner) => {
            tracing::info!("{}", runner.account());
            Ok(Ok(runner))
        }
        Err(error) if may_lack_programs => {
            tracing::info!("{error}");
            Ok(Err(error.to_string()))
        }
        Err(error) => Err(error),
    }
}

/// Lets calls in progress end and be reported.
async fn stop(calls: &TaskTracker, broken_off: &CancellationToken, reporter: tokio::task::JoinHandle<()>) {
    calls.close();
    if tokio::time::timeout(END_WITHIN, calls.wait()).await.is_err() {
        tracing::info!(calls = calls.len(), "calls that are under way are broken off; other runners will make them");
        broken_off.cancel();
        calls.wait().await;
    }
    // It ends once it has reported everything: nothing is left that could send more.
    if tokio::time::timeout(REPORT_WITHIN, reporter).await.is_err() {
        tracing::warn!("the ledger did not take the last reports; other runners will make these calls");
    }
}

async fn until(shutdown: CancellationToken, task: impl Future<Output = ()>) {
    shutdown.run_until_cancelled(task).await;
}

/// Tells the ledger that this runner is alive, and acts on the answers.
async fn heartbeats(service: Arc<Service>) {
    let mut beats = tokio::time::interval(HEARTBEAT_EVERY);
    beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        let heartbeat = RunnerHeartbeat {
            runner: service.name.clone(),
            is_free: service.slots.available_permits() > 0 || service.waiting.load(Ordering::Relaxed) > 0,
            calls: service.calls.in_hand(),
        };
        match service.ledger.runner_heartbeat(&heartbeat).await {
            Ok(briefing) => {
                if let Ok(runner) = &service.runner {
                    runner.keep_persistent(&briefing.persistent);
                }
                service.calls.end(&briefing.given_up);
            }
            Err(error) => tracing::debug!(%error, "a sign of life was not heard"),
        }
    }
}

/// The name in the configuration, else a unique one.
fn name(config: &RunnerConfig) -> String {
    if !config.name.is_empty() {
        return config.name.clone();
    }
    let host = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match RUNNERS.fetch_add(1, Ordering::Relaxed) {
        0 => format!("{host}-{}", std::process::id()),
        number => format!("{host}-{}-{number}", std::process::id()),
    }
}
