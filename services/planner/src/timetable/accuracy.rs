//! The accuracy of predicted starts, found by reading the records of a period.

use muster_domain::State;
use muster_schemas::{
    JobId, Timestamp,
    event::{Event, Record},
    plan::PlanRecord,
    views::{LeadPredictionErrors, PlanAccuracy, PredictionErrors, PredictionMiss, QueuePredictionErrors},
};
use std::collections::BTreeMap;

/// How long before a start its prediction is evaluated.
const LEADS_SECONDS: [i64; 4] = [600, 3_600, 6 * 3_600, 86_400];
/// A start this much later than predicted does not count as later: a plan follows events by some milliseconds.
const KEPT_SECONDS: f64 = 1.0;
/// The number of worst predictions that are named.
const WORST: usize = 10;

/// A period whose predictions are being compared with the outcome.
#[derive(Clone, Debug)]
pub struct Accuracy {
    since: Timestamp,
    /// Kept up to date because it knows the queues of jobs.
    state: State,
    /// Predictions for each waiting job, oldest first; the last one is in force.
    predictions: BTreeMap<JobId, Vec<Prediction>>,
    outcomes: Vec<Outcome>,
    unforeseen: u64,
}

#[derive(Clone, Copy, Debug)]
struct Prediction {
    at: Timestamp,
    start: Option<Timestamp>,
}

/// A job that started, with the predictions for it.
#[derive(Clone, Debug)]
struct Outcome {
    job: JobId,
    queue: String,
    started: Timestamp,
    /// At least one of them has a time.
    predictions: Vec<Prediction>,
}

impl Accuracy {
    /// Begins at the state of the given time. Earlier predictions count as if they had been made then.
    pub fn from(state: State, since: Timestamp) -> Self {
        let in_force = state.jobs().filter(|job| job.is_waiting()).filter_map(|job| {
            let promised = job.slot.as_ref().map(|slot| slot.start);
            let start = promised.or(job.predicted_start)?;
            Some((job.id, vec![Prediction { at: since, start: Some(start) }]))
        });
        Self { since, predictions: in_force.collect(), outcomes: Vec::new(), unforeseen: 0, state }
    }

    /// Reads the next record.
    pub fn read(&mut self, record: &Record) {
        match &record.event {
            Event::Planned { plan } => self.predicted(plan, record.time),
            Event::RunAllocated { job, .. } => self.started(*job, record.time),
            Event::JobFinished { job, .. } => {
                self.predictions.remove(job);
            }
            _ => {}
        }
        // The ledger has accepted it.
        let _ = self.state.apply(record);
    }

    fn predicted(&mut self, plan: &PlanRecord, at: Timestamp) {
        let slots = plan.slots.iter().filter_map(|planned| Some((planned.job, Some(planned.slot.as_ref()?.start))));
        let predictions = plan.predictions.iter().map(|predicted| (predicted.job, predicted.start));
        for (job, start) in predictions.chain(slots) {
            if self.state.job(job).is_some_and(|job| job.is_waiting()) {
                let known = self.predictions.entry(job).or_default();
                if known.last().is_none_or(|last| last.start != start) {
                    known.push(Prediction { at, start });
                }
            }
        }
    }

    /// A prediction for an array is for its next task, which uses it up.
    fn started(&mut self, job: JobId, started: Timestamp) {
        let own = self.predictions.remove(&job);
        let predictions = own.or_else(|| self.predictions.remove(&job.whole())).unwrap_or_default();
        if predictions.iter().all(|prediction| prediction.start.is_none()) {
            self.unforeseen += 1;
            return;
        }
        let known = self.state.job(job).or_else(|| self.state.job(job.whole()));
        let queue = known.map(|job| job.lead().queue.to_string()).unwrap_or_default();
        self.outcomes.push(Outcome { job, queue, started, predictions });
    }

    /// The last record that was read.
    pub fn sequence(&self) -> muster_schemas::Sequence {
        self.state.sequence()
    }

    /// The result.
    pub fn finish(self) -> PlanAccuracy {
        let first = |outcome: &Outcome| outcome.predictions.iter().find_map(|known| Some((known.at, known.start?)));
        let errors_of = |outcomes: &[&Outcome]| {
            let firsts = outcomes.iter().filter_map(|outcome| Some((first(outcome)?.1, outcome.started)));
            errors(firsts.collect())
        };
        let mut queues: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
        for outcome in &self.outcomes {
            queues.entry(&outcome.queue).or_default().push(outcome);
        }
        let leads = LEADS_SECONDS.map(|lead_seconds| {
            let pairs =
                self.outcomes.iter().filter_map(|outcome| Some((outcome.at_lead(lead_seconds)?, outcome.started)));
            LeadPredictionErrors { lead_seconds, errors: errors(pairs.collect()) }
        });
        let misses = self.outcomes.iter().filter_map(|outcome| {
            let (predicted_at, predicted) = first(outcome)?;
            let (job, queue, started) = (outcome.job, outcome.queue.clone(), outcome.started);
            Some(PredictionMiss { job, queue, predicted_at, predicted, started })
        });
        let mut worst: Vec<PredictionMiss> = misses.collect();
        worst.sort_by_key(|miss| (std::cmp::Reverse(miss.started.micros_since(miss.predicted).abs()), miss.job));
        worst.truncate(WORST);
        PlanAccuracy {
            since: self.since,
            until: self.state.time(),
            started: self.unforeseen + self.outcomes.len() as u64,
            unforeseen: self.unforeseen,
            first: errors_of(&self.outcomes.iter().collect::<Vec<_>>()),
            queues: queues
                .into_iter()
                .map(|(queue, outcomes)| QueuePredictionErrors {
                    queue: queue.to_owned(),
                    errors: errors_of(&outcomes),
                })
                .collect(),
            leads: leads.to_vec(),
            worst,
        }
    }
}

impl Outcome {
    /// The prediction this long before the start.
    fn at_lead(&self, lead_seconds: i64) -> Option<Timestamp> {
        let then = self.started.plus_seconds(-lead_seconds);
        self.predictions.iter().rev().find(|prediction| prediction.at <= then)?.start
    }
}

/// The errors of predicted starts against the starts.
fn errors(pairs: Vec<(Timestamp, Timestamp)>) -> PredictionErrors {
    if pairs.is_empty() {
        return PredictionErrors::default();
    }
    let late: Vec<f64> =
        pairs.iter().map(|(predicted, started)| started.micros_since(*predicted) as f64 / 1e6).collect();
    let mut sizes: Vec<f64> = late.iter().map(|late| late.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let count = sizes.len();
    // The least value that is at least as large as that share of the values.
    let percentile = |percent: usize| sizes[(count * percent).div_ceil(100).max(1) - 1];
    let kept = late.iter().filter(|late| **late <= KEPT_SECONDS).count();
    PredictionErrors {
        count: count as u64,
        mean_seconds: sizes.iter().sum::<f64>() / count as f64,
        median_seconds: percentile(50),
        p95_seconds: percentile(95),
        kept_share: kept as f64 / count as f64,
    }
}
