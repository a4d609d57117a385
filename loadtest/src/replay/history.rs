//! What the events say about the jobs.

use crate::{api::PublicEvent, http::EventStream};
use anyhow::{Context as _, Result, bail};
use muster_schemas::{JobId, Timestamp};
use std::{collections::BTreeMap, time::Duration};

/// The kinds of events to follow.
pub const KINDS: &str = "job.submitted,job.allocated,job.started,run.ended,job.finished";

/// The events of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobHistory {
    /// How often it was submitted.
    pub submitted: u32,
    /// When runs got their resources.
    pub allocated: Vec<Timestamp>,
    /// When runs started.
    pub started: Vec<Timestamp>,
    /// When runs ended.
    pub ended: Vec<RunEnd>,
    /// How it finished, each time.
    pub outcomes: Vec<String>,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// When the ledger recorded it.
    pub time: Timestamp,
    /// How long the run lasted on the node where it ended last, by that node's clock.
    pub measured: Duration,
}

/// The events of all jobs.
#[derive(Clone, Debug, Default)]
pub struct History {
    jobs: BTreeMap<JobId, JobHistory>,
    finished: usize,
    first: Option<Timestamp>,
    last: Timestamp,
}

impl History {
    /// Follows the events until this many jobs have finished.
    ///
    /// # Errors
    /// If the stream ends, or no event comes for longer than `patience`.
    pub async fn follow(mut events: EventStream, jobs: usize, patience: Duration) -> Result<Self> {
        let mut history = Self::default();
        while history.finished < jobs {
            let Ok(next) = tokio::time::timeout(patience, events.next()).await else {
                bail!(
                    "nothing has happened for {} s; {} of {jobs} jobs have finished",
                    patience.as_secs(),
                    history.finished
                );
            };
            let data = next?.context("the stream of events has ended")?;
            let event = serde_json::from_slice(&data)
                .with_context(|| format!("not an event: {}", String::from_utf8_lossy(&data)))?;
            history.add(&event);
        }
        Ok(history)
    }

    fn add(&mut self, event: &PublicEvent) {
        let Some(id) = event.job() else { return };
        let told = self.jobs.entry(id).or_default();
        match event.kind_verb() {
            "job.submitted" => told.submitted += 1,
            "job.allocated" => told.allocated.push(event.time),
            "job.started" => told.started.push(event.time),
            "run.ended" => told.ended.push(RunEnd { time: event.time, measured: measured(&event.data["exit"]) }),
            "job.finished" => {
                told.outcomes.push(event.data["outcome"].as_str().unwrap_or("unknown").to_owned());
                self.finished += 1;
            }
            _ => {}
        }
        self.first.get_or_insert(event.time);
        self.last = event.time;
    }

    /// The events of a job.
    pub fn job(&self, id: JobId) -> Option<&JobHistory> {
        self.jobs.get(&id)
    }

    /// The time from the first event to the last.
    pub fn span_seconds(&self) -> f64 {
        self.last.micros_since(self.first.unwrap_or(self.last)) as f64 / 1e6
    }
}

/// The time from start to end according to the node. Zero if it was lost or started nothing.
fn measured(exit: &serde_json::Value) -> Duration {
    let moment = |key: &str| serde_json::from_value::<Timestamp>(exit[key].clone()).ok();
    let micros = moment("ended").zip(moment("started")).map_or(0, |(ended, started)| ended.micros_since(started));
    Duration::from_micros(micros.max(0).unsigned_abs())
}
