//! Predicts starts in parallel to the cycles: on a separate thread, and with pauses, so that it never takes more than a
//! fifth of a processor.

use muster_domain::State;
use muster_planner::{
    predict::{Effort, Tolerance, predict},
    projection::Projection,
};
use muster_schemas::{
    Sequence, Timestamp,
    plan::{PredictedStart, ProposedPlan},
};
use muster_telemetry::metrics::{self, Histogram};
use std::{sync::LazyLock, time::Duration};
use tokio::{task::JoinHandle, time::Instant};

static SECONDS: LazyLock<Histogram<f64>> = LazyLock::new(|| {
    metrics::duration_seconds("muster_planner_prediction_seconds", "Time to predict the starts of all waiting jobs.")
});

/// The pause lasts this many times as long as the work before it.
const PAUSE_FACTOR: u32 = 4;
/// The shortest pause.
const SHORTEST_PAUSE: Duration = Duration::from_secs(5);
/// The most predictions sent to the ledger in one command, those of the next starts; more follow.
const MOST_AT_A_TIME: usize = 10_000;

/// The predictor, and when it runs next.
#[derive(Debug)]
pub(crate) struct Predictor {
    tolerance: Tolerance,
    work: Option<JoinHandle<Foreseen>>,
    rest_until: Instant,
    /// Whether something has happened since the last prediction.
    is_due: bool,
}

/// Predictions, and what they were made from.
#[derive(Debug)]
pub(crate) struct Foreseen {
    seen: Sequence,
    at: Timestamp,
    starts: Vec<PredictedStart>,
    took: Duration,
}

impl Predictor {
    pub fn new(tolerance: Tolerance) -> Self {
        Self { tolerance, work: None, rest_until: Instant::now(), is_due: true }
    }

    /// Something happened that can change predictions.
    pub fn note_change(&mut self) {
        self.is_due = true;
    }

    /// When it wants to begin; `None` if it is working or nothing has happened.
    pub fn begins_at(&self) -> Option<Instant> {
        (self.is_due && self.work.is_none()).then_some(self.rest_until)
    }

    /// Begins, if it is time.
    pub fn begin(&mut self, projection: &Projection, at: Timestamp) {
        if self.begins_at().is_none_or(|begin| begin > Instant::now()) {
            return;
        }
        self.is_due = false;
        let followers = projection.followers();
        if projection.waiting() == 0 && followers.is_empty() {
            return;
        }
        let (engine, seen) = (projection.engine().clone(), projection.state().sequence());
        self.work = Some(tokio::task::spawn_blocking(move || {
            let began = std::time::Instant::now();
            let starts = predict(&engine, followers, at, Effort::default());
            Foreseen { seen, at, starts, took: began.elapsed() }
        }));
    }

    /// Its predictions, once they are made; waits for ever if it is not working. Cancel safe.
    pub async fn foreseen(&mut self) -> Option<Foreseen> {
        let Some(work) = &mut self.work else { return std::future::pending().await };
        let foreseen = work.await;
        self.work = None;
        match foreseen {
            Ok(foreseen) => {
                SECONDS.record(foreseen.took.as_secs_f64(), &[]);
                self.rest_until = Instant::now() + (foreseen.took * PAUSE_FACTOR).max(SHORTEST_PAUSE);
                Some(foreseen)
            }
            Err(error) => {
                tracing::error!(%error, "starts could not be predicted");
                self.rest_until = Instant::now() + Duration::from_secs(60);
                None
            }
        }
    }

    /// The news among them, as a plan with nothing else.
    pub fn news(&mut self, foreseen: Foreseen, state: &State) -> Option<ProposedPlan> {
        let Foreseen { seen, at, mut starts, .. } = foreseen;
        starts.retain(|predicted| {
            state
                .job(predicted.job)
                .is_some_and(|job| job.is_waiting() && self.tolerance.is_news(job.predicted_start, predicted.start, at))
        });
        starts.sort_by_key(|predicted| (predicted.start.unwrap_or(Timestamp::MAX), predicted.job));
        self.is_due |= starts.len() > MOST_AT_A_TIME;
        starts.truncate(MOST_AT_A_TIME);
        (!starts.is_empty()).then(|| ProposedPlan { seen, at, predictions: starts, ..ProposedPlan::default() })
    }
}
