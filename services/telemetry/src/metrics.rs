//! The metrics of this process.
//!
//! Names begin with `muster_` and end with the unit (`_seconds`, `_bytes`), counters with `_total`. An instrument is
//! created once and kept:
//!
//! ```
//! use muster_telemetry::metrics::{self, Counter};
//! use std::sync::LazyLock;
//!
//! static COMMANDS: LazyLock<Counter<u64>> =
//!     LazyLock::new(|| metrics::counter("muster_commands_total", "Commands that were decided."));
//!
//! COMMANDS.add(1, &[]);
//! assert!(metrics::render_prometheus().contains("muster_commands_total 1"));
//! ```
//!
//! They are OpenTelemetry instruments, so one definition serves both a collector (OTLP) and the Prometheus endpoint.

mod prometheus;

use anyhow::ensure;
use opentelemetry::metrics::{Meter, MeterProvider as _};
pub use opentelemetry::{
    KeyValue,
    metrics::{Counter, Gauge, Histogram, UpDownCounter},
};
use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    metrics::{
        InstrumentKind, ManualReader, Pipeline, SdkMeterProvider, Temporality, data::ResourceMetrics,
        reader::MetricReader,
    },
};
use std::{
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

/// Upper bounds, in seconds, of the buckets of a duration: from 50 us, a commit, to 100 s, a long queue.
const DURATION_BOUNDS: [f64; 20] = [
    0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
    20.0, 50.0, 100.0,
];

struct Registry {
    provider: SdkMeterProvider,
    meter: Meter,
    reader: SharedReader,
}

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// A number that only grows.
pub fn counter(name: &'static str, description: &'static str) -> Counter<u64> {
    registry().meter.u64_counter(name).with_description(description).build()
}

/// A number that goes up and down by steps.
pub fn up_down_counter(name: &'static str, description: &'static str) -> UpDownCounter<i64> {
    registry().meter.i64_up_down_counter(name).with_description(description).build()
}

/// A number that is set.
pub fn gauge(name: &'static str, description: &'static str) -> Gauge<i64> {
    registry().meter.i64_gauge(name).with_description(description).build()
}

/// How long something takes, in seconds.
pub fn duration_seconds(name: &'static str, description: &'static str) -> Histogram<f64> {
    let builder = registry().meter.f64_histogram(name).with_description(description);
    builder.with_boundaries(DURATION_BOUNDS.to_vec()).build()
}

/// All metrics of this process in the text format of Prometheus, version 0.0.4.
pub fn render_prometheus() -> String {
    let mut collected = ResourceMetrics::default();
    match registry().reader.collect(&mut collected) {
        Ok(()) => prometheus::render(&collected),
        // Only after the end of telemetry.
        Err(_) => String::new(),
    }
}

/// Describes this process in a metric, so that what Prometheus reads can be joined with it.
pub(crate) fn tell_process(identity: &crate::Identity) {
    let labels = identity.attributes().into_iter().map(|(name, value)| KeyValue::new(name.replace('.', "_"), value));
    gauge("muster_process_info", "Which process this is; always 1.").record(1, &labels.collect::<Vec<_>>());
}

fn registry() -> &'static Registry {
    REGISTRY.get_or_init(|| Registry::new(None))
}

/// Exports the metrics from now on.
pub(crate) fn export_with(exporter: MetricExporter, resource: Resource) -> anyhow::Result<()> {
    let registry = Registry::new(Some((exporter, resource)));
    ensure!(REGISTRY.set(registry).is_ok(), "telemetry has to be started before the first metric is made");
    Ok(())
}

/// Exports the rest.
pub(crate) fn shut_down(timeout: Duration) {
    if let Some(registry) = REGISTRY.get() {
        let _ = registry.provider.shutdown_with_timeout(timeout);
    }
}

impl Registry {
    fn new(export: Option<(MetricExporter, Resource)>) -> Self {
        let reader = SharedReader(Arc::new(ManualReader::builder().build()));
        let mut builder = SdkMeterProvider::builder().with_reader(reader.clone());
        if let Some((exporter, resource)) = export {
            builder = builder.with_resource(resource).with_periodic_exporter(exporter);
        }
        let provider = builder.build();
        Self { meter: provider.meter("muster"), provider, reader }
    }
}

/// A reader that both the SDK and the Prometheus endpoint hold.
#[derive(Clone, Debug)]
struct SharedReader(Arc<ManualReader>);

impl MetricReader for SharedReader {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, metrics: &mut ResourceMetrics) -> OTelSdkResult {
        self.0.collect(metrics)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}
