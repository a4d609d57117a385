//! Metrics of the ledger.

use muster_telemetry::metrics::{self, Counter, Gauge, Histogram};
use std::time::Duration;

/// The ledger's metrics; see [`muster_telemetry::metrics`] for where they are shown.
pub(crate) struct Metrics {
    records: Counter<u64>,
    commit_seconds: Histogram<f64>,
    waiting_calls: Gauge<i64>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let commit_seconds = "Writing and syncing one batch of records.";
        Self {
            records: metrics::counter("muster_ledger_records_total", "Records written to the log."),
            waiting_calls: metrics::gauge("muster_ledger_waiting_calls", "Calls of filters that wait for a runner."),
            commit_seconds: metrics::duration_seconds("muster_ledger_commit_seconds", commit_seconds),
        }
    }

    pub(crate) fn calls_wait(&self, calls: usize) {
        self.waiting_calls.record(i64::try_from(calls).unwrap_or(i64::MAX), &[]);
    }

    pub(crate) fn committed(&self, records: usize, took: Duration) {
        self.records.add(records as u64, &[]);
        self.commit_seconds.record(took.as_secs_f64(), &[]);
    }
}
