//! How long the planner takes for a plan: as metrics, and for each plan as a log line of level debug, which gives
//! quantiles that the buckets of a metric are too wide for (`log_filter =
//! "info,muster_planner_service::cycle_time=debug"`).

use muster_telemetry::metrics::{self, Gauge, Histogram};
use std::{
    sync::{
        LazyLock,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

static CYCLE_SECONDS: LazyLock<Histogram<f64>> =
    LazyLock::new(|| metrics::duration_seconds("muster_planner_cycle_seconds", "Time to make one plan."));
static LAST_CYCLE: LazyLock<Gauge<i64>> = LazyLock::new(|| {
    metrics::gauge("muster_planner_last_cycle_micros", "Time to make the last plan, in microseconds.")
});
static LONGEST_CYCLE: LazyLock<Gauge<i64>> = LazyLock::new(|| {
    metrics::gauge("muster_planner_longest_cycle_micros", "The longest time that a plan took, in microseconds.")
});
static LONGEST_MICROS: AtomicI64 = AtomicI64::new(0);

/// Records that a plan took this long.
pub(crate) fn note(took: Duration) {
    CYCLE_SECONDS.record(took.as_secs_f64(), &[]);
    let micros = i64::try_from(took.as_micros()).unwrap_or(i64::MAX);
    LAST_CYCLE.record(micros, &[]);
    LONGEST_CYCLE.record(LONGEST_MICROS.fetch_max(micros, Ordering::Relaxed).max(micros), &[]);
    tracing::debug!(micros, "a plan was made");
}
