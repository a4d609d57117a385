//! What the events told of the jobs.

use crate::{api::PublicEvent, http::EventStream};
use anyhow::{Context as _, Result, bail};
use muster_schemas::{JobId, Timestamp};
use std::{collections::BTreeMap, time::Duration};

/// The events that are followed.
pub const KINDS: &str = "job.submitted,job.allocated,job.started,run.ended,job.finished";

/// What was told of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobHistory {
    /// How often it was submitted, allocated, started, ended and finished.
    pub submitted: u32,
    /// Times a run was allocated.
    pub allocated: u32,
    /// When runs started.
    pub started: Vec<Timestamp>,
    /// When runs ended.
    pub ended: Vec<Timestamp>,
    /// How it finished, each time.
    pub outcomes: Vec<String>,
}

/// What was told of all jobs.
#[derive(Clone, Debug, Default)]
pub struct History {
    jobs: BTreeMap<JobId, JobHistory>,
    finished: usize,
    first: Option<Timestamp>,
    last: Timestamp,
}

impl History {
    /// Follows the events until so many jobs have finished.
    ///
    /// # Errors
    /// If the stream ends, or nothing is told for longer than `patience`.
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
            "job.allocated" => told.allocated += 1,
            "job.started" => told.started.push(event.time),
            "run.ended" => told.ended.push(event.time),
            "job.finished" => {
                told.outcomes.push(event.data["outcome"].as_str().unwrap_or("unknown").to_owned());
                self.finished += 1;
            }
            _ => {}
        }
        self.first.get_or_insert(event.time);
        self.last = event.time;
    }

    /// What was told of a job.
    pub fn job(&self, id: JobId) -> Option<&JobHistory> {
        self.jobs.get(&id)
    }

    /// From the first event of a job to the last.
    pub fn span_seconds(&self) -> f64 {
        self.last.micros_since(self.first.unwrap_or(self.last)) as f64 / 1e6
    }
}
