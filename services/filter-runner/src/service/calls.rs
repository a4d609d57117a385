//! Making the calls that were claimed.

use super::{Service, claim::Room};
use crate::{Answer, Call, Description, RunError};
use muster_schemas::{
    command::{CallOutcome, CallReport},
    event::TraceContext,
    filter::{ActivationParameters, CallId, FilterExit, FilterReport, FilterSpec},
    filter_order::{ComponentPart, DescribedJob, FilterOrder, FilterWork},
};
use muster_telemetry::{
    metrics::{self, Counter, Histogram, KeyValue},
    trace,
};
use std::{
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;

static CALLS: LazyLock<Counter<u64>> = LazyLock::new(|| {
    metrics::counter(
        "muster_filter_calls_total",
        "Calls of filters that were made, by filter, kind, action and result.",
    )
});
static SECONDS: LazyLock<Histogram<f64>> = LazyLock::new(|| {
    metrics::duration_seconds("muster_filter_call_seconds", "A call of a filter, from its start to its end, by filter.")
});

/// The ledger offers a call to others once its runner has been silent for the limit plus this (HPC-F-85).
const SILENCE: Duration = Duration::from_secs(10);
/// After a machine-level failure the slot rests this long; otherwise a broken runner would take the calls of all
/// others.
const MACHINE_RESTS_FOR: Duration = Duration::from_secs(5);
/// The number of the signal that ends filters.
const SIGTERM: u8 = libc::SIGTERM as u8;
/// Larger descriptions, which may be compressed, are processed on another thread.
const LARGE_BYTES: usize = 32 << 10;

/// What the making of calls needs.
pub(super) struct Making {
    pub(super) service: Arc<Service>,
    pub(super) reports: mpsc::Sender<CallReport>,
    pub(super) tasks: TaskTracker,
    /// Ends all calls.
    pub(super) stop: CancellationToken,
}

/// Starts making a call that was claimed at `asked`. The result goes to the reporter.
pub(super) fn begin(making: &Making, order: FilterOrder, room: Room, asked: Instant, trace: TraceContext) {
    let (service, reports) = (Arc::clone(&making.service), making.reports.clone());
    let (stop, given_up) = (making.stop.clone(), making.service.calls.ending(order.call));
    let (id, attempt) = (order.call, order.attempt);
    let is_filter = matches!(order.work, FilterWork::Filter { .. });
    let span = tracing::debug_span!("filter call", job = %id.job, call = %id, attempt);
    let in_hand = InHand { service: Arc::clone(&service), call: Some(id) };
    let work = async move {
        let mut late = Vec::new();
        let made = make(&service, order, room, asked, &mut late);
        // Dropping the call ends its processes (HPC-F-23).
        let report = tokio::select! {
            report = made => report,
            () = stop.cancelled() => None,
            () = given_up.cancelled(), if is_filter => Some(ended(id, attempt)),
        };
        // The reporter lives as long as anybody has something to report.
        for report in late {
            let _ = reports.send(report).await;
        }
        let Some(report) = report else { return };
        in_hand.until_it_is_reported();
        let _ = reports.send(report).await;
    };
    making.tasks.spawn(work.instrument(trace::in_trace(span, trace)));
}

/// A call in hand; dropping this releases the call, whatever the result.
struct InHand {
    service: Arc<Service>,
    call: Option<CallId>,
}

impl InHand {
    /// The reporter is responsible for the call from here.
    fn until_it_is_reported(mut self) {
        self.call = None;
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        if let Some(call) = self.call {
            self.service.calls.drop_call(call);
        }
    }
}

/// The report on a call that was ended with SIGTERM because its job was cancelled.
fn ended(call: CallId, attempt: u32) -> CallReport {
    let report = FilterReport { exit: FilterExit::Signal(SIGTERM), ..FilterReport::runner_lost() };
    CallReport { call, attempt, outcome: CallOutcome::Called(Box::new(report)) }
}

/// The result of a call; `None` if it is unknown and others must make the call. Repeated answers to earlier calls go to
/// `late`.
async fn make(
    service: &Arc<Service>,
    order: FilterOrder,
    room: Room,
    asked: Instant,
    late: &mut Vec<CallReport>,
) -> Option<CallReport> {
    let FilterOrder { call, attempt, job, work } = order;
    let outcome = match work {
        FilterWork::Filter { filter, limit_seconds, parameters } => {
            let asked_for = AskedFor { id: call, attempt, filter, limit_seconds, parameters, component: job.component };
            CallOutcome::Called(Box::new(asked_for.make(service, job, (room, asked), late).await?))
        }
        FilterWork::Validate { templates, default_template, now } => {
            let size = job.document.as_ref().map_or(0, |document| document.bytes.len());
            let descriptions = Arc::clone(&service.descriptions);
            let checked =
                off_thread(size, move || descriptions.validate(&job, &templates, default_template.as_deref(), now));
            match checked.await? {
                Ok(validated) => CallOutcome::Validated(Box::new(validated)),
                Err(why) => CallOutcome::Refused(why),
            }
        }
    };
    Some(CallReport { call, attempt, outcome })
}

/// A call of a filter.
struct AskedFor {
    id: CallId,
    attempt: u32,
    filter: FilterSpec,
    limit_seconds: u32,
    parameters: Option<ActivationParameters>,
    component: Option<ComponentPart>,
}

impl AskedFor {
    async fn make(
        &self,
        service: &Arc<Service>,
        job: DescribedJob,
        (mut room, asked): (Room, Instant),
        late: &mut Vec<CallReport>,
    ) -> Option<FilterReport> {
        let size = job.document.as_ref().map_or(0, |document| document.bytes.len());
        let descriptions = Arc::clone(&service.descriptions);
        let is_staging = self.id.kind.is_staging();
        let describe = move || if is_staging { descriptions.staged(&job) } else { descriptions.describe(&job) };
        let told = match off_thread(size, describe).await? {
            Ok(told) => told,
            Err(why) => return Some(never_called(format!("its job cannot be described: {why}"))),
        };
        let turn = match &room {
            Room::Lane(place) => Some(place.turn().await?),
            Room::Slot(_) => None,
        };
        if asked.elapsed() > Duration::from_secs(u64::from(self.limit_seconds)) + SILENCE {
            tracing::info!(filter = self.filter.name, "the call waited here for too long; others have it now");
            return None;
        }
        let runner = match &service.runner {
            Ok(runner) => runner,
            Err(why) => {
                self.count("absent");
                service.calls.note_absent(self.id);
                return Some(never_called(why.clone()));
            }
        };
        let answer = match runner.run(&self.call(&told)).await {
            Ok(answer) => answer,
            Err(error @ RunError::BadCall { .. }) => return Some(never_called(error.to_string())),
            Err(error) => {
                // The progress of the call is unknown. Without a report the ledger offers it to others (HPC-F-85).
                tracing::error!(%error, "a call has no result");
                self.count("none");
                if matches!(error, RunError::Machine { .. }) {
                    tokio::time::sleep(MACHINE_RESTS_FOR).await;
                }
                return None;
            }
        };
        if let Room::Lane(place) = &mut room {
            place.took(answer.duration);
            service.calls.note_answered(self.id, self.attempt);
        }
        for surplus in &answer.surplus {
            tracing::warn!(filter = self.filter.name, call = surplus.id, "a filter answered a call once more");
            late.extend(service.calls.late(surplus));
        }
        drop((turn, room));
        self.observe(&answer);
        if answer.result.is_absent() {
            service.calls.note_absent(self.id);
        }
        self.report(service, told, answer).await
    }

    fn call(&self, told: &Description) -> Call {
        Call {
            invocation_id: self.id.to_string(),
            attempt: self.attempt,
            kind: self.id.kind,
            action: self.id.action,
            filter: self.filter.clone(),
            time_limit_seconds: self.limit_seconds,
            job: self.id.job,
            document: told.xml.clone(),
            document_json: Some(told.json.clone()),
            parameters: self.parameters,
            component: self.component,
        }
    }

    async fn report(&self, service: &Arc<Service>, told: Description, answer: Answer) -> Option<FilterReport> {
        let (descriptions, id) = (Arc::clone(&service.descriptions), self.id);
        let size = told.xml.len();
        off_thread(size, move || {
            let judgement = descriptions.judge(id.kind, id.action, &told, &answer);
            judgement.into_report(&told, answer)
        })
        .await
    }

    fn observe(&self, answer: &Answer) {
        self.count(match &answer.result {
            FilterExit::Code(0) => "passed",
            FilterExit::Code(_) | FilterExit::Signal(_) => "other",
            FilterExit::TimedOut => "timed_out",
            FilterExit::NotFound(_) | FilterExit::NotRunnable(_) => "absent",
            FilterExit::BadAnswer(_) => "bad_answer",
            FilterExit::RunnerLost => "none",
        });
        SECONDS.record(answer.duration.as_secs_f64(), &[KeyValue::new("filter", self.filter.name.clone())]);
    }

    fn count(&self, result: &'static str) {
        CALLS.add(
            1,
            &[
                KeyValue::new("filter", self.filter.name.clone()),
                KeyValue::new("kind", self.id.kind.word()),
                KeyValue::new("action", self.id.action.word()),
                KeyValue::new("result", result),
            ],
        );
    }
}

/// The report on a call that no runner can make.
fn never_called(why: String) -> FilterReport {
    FilterReport { exit: FilterExit::NotRunnable(why), ..FilterReport::runner_lost() }
}

/// Moves slow work on large descriptions to another thread. `None` if it panicked.
async fn off_thread<T: Send + 'static>(size_bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if size_bytes < LARGE_BYTES {
        return Some(work());
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Some(done),
        Err(error) => {
            tracing::error!(%error, "a description could not be worked on");
            None
        }
    }
}
