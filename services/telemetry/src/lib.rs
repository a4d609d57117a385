//! Observability: log lines, traces and metrics, the same way in every service.
//!
//! - Log lines go to standard error, as text or JSON. A line about a job carries the field `job`.
//! - One job is one trace through all services. Its context travels in messages and records as a
//!   [`TraceContext`](muster_schemas::event::TraceContext), even while nothing is exported; see [`trace`].
//! - Metrics are kept in one registry for the process; see [`metrics`].
//!
//! Services open spans at level debug (`tracing::debug_span!`). With the usual log filter and without a collector such
//! a span is one relaxed load, and it becomes real as soon as somebody looks.

mod export;
mod identity;
mod listener;
pub mod metrics;
pub mod testing;
pub mod trace;

pub use identity::Identity;

use anyhow::Context as _;
use opentelemetry_sdk::trace::SdkTracerProvider;
use serde::Deserialize;
use std::net::SocketAddr;
use tracing_subscriber::{EnvFilter, Layer, Registry, layer::SubscriberExt as _, reload, util::SubscriberInitExt as _};

/// Settings of a process's telemetry.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// Which log lines are written: `error`, `warn`, `info`, `debug` or `trace`, optionally by module, as in
    /// `info,muster_ledger=debug`.
    pub log_filter: String,
    /// The format of log lines.
    pub log_format: LogFormat,
    /// Base address of an OpenTelemetry collector that accepts OTLP over plain http, such as `http://127.0.0.1:4318`.
    /// Without one nothing is exported.
    pub otlp_endpoint: Option<String>,
    /// The cluster name in everything that this process exports. By default the name in `[cluster]`, if the file has
    /// one.
    pub cluster: Option<String>,
    /// Address and port where this process shows its metrics in the format of Prometheus, at `/metrics`, such as
    /// `127.0.0.1:9464`. Anybody who reaches it may read them. Without it they are only at the gateway.
    pub metrics_listen: Option<SocketAddr>,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            log_filter: "info".into(),
            log_format: LogFormat::Text,
            otlp_endpoint: None,
            cluster: None,
            metrics_listen: None,
        }
    }
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Keeps telemetry running. Dropping it sends what has been collected and not yet exported, within a few seconds.
#[must_use = "telemetry stops when this is dropped"]
pub struct Guard {
    filter: reload::Handle<EnvFilter, Registry>,
    tracer_provider: Option<SdkTracerProvider>,
}

impl Guard {
    /// Changes the log filter.
    ///
    /// # Errors
    /// If the filter cannot be understood; the old one stays in force.
    pub fn set_log_filter(&self, filter: &str) -> anyhow::Result<()> {
        self.filter.reload(parse_filter(filter)?).context("the log filter can no longer be changed")
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(provider) = self.tracer_provider.take() {
            export::shut_down(provider);
        }
    }
}

/// Starts telemetry for this process. Call it once, before creating any metric.
///
/// # Errors
/// If the log filter or the collector's address cannot be understood, the metrics address cannot be listened on, or
/// telemetry has already been started. A collector that does not answer is not an error: the log reports it once, and
/// the scheduler keeps running.
pub fn init(identity: &Identity, config: &TelemetryConfig) -> anyhow::Result<Guard> {
    let tracer_provider = match &config.otlp_endpoint {
        Some(endpoint) => Some(export::start(identity, endpoint)?),
        None => None,
    };
    metrics::tell_process(identity);
    if let Some(address) = config.metrics_listen {
        listener::start(address)?;
    }
    let (filter, handle) = reload::Layer::new(parse_filter(&config.log_filter)?);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match config.log_format {
        LogFormat::Text => {
            let colours =
                std::io::IsTerminal::is_terminal(&std::io::stderr()) && std::env::var_os("NO_COLOR").is_none();
            lines.with_ansi(colours).with_filter(filter).boxed()
        }
        LogFormat::Json => lines.json().flatten_event(true).with_filter(filter).boxed(),
    };
    let spans = tracer_provider.as_ref().map(trace::span_layer);
    tracing_subscriber::registry()
        .with(lines)
        .with(spans)
        .try_init()
        .context("telemetry has been started already in this process")?;
    Ok(Guard { filter: handle, tracer_provider })
}

fn parse_filter(text: &str) -> anyhow::Result<EnvFilter> {
    EnvFilter::builder()
        .parse(text)
        .with_context(|| format!("`{text}` is not a log filter such as `info` or `info,muster_ledger=debug`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_makes_no_sense_is_refused() {
        let config = TelemetryConfig { log_filter: "info,muster_ledger=loud".into(), ..TelemetryConfig::default() };
        let error = init(&Identity::of("test"), &config).err().expect("refused");
        assert!(error.to_string().contains("muster_ledger=loud"), "{error}");
    }

    #[test]
    fn an_address_that_cannot_be_exported_to_is_refused() {
        for endpoint in ["https://collector:4318", "collector:4318", ""] {
            let config = TelemetryConfig { otlp_endpoint: Some(endpoint.into()), ..TelemetryConfig::default() };
            let error = init(&Identity::of("test"), &config).err().expect("refused");
            assert!(error.to_string().contains("http://"), "{error}");
        }
    }

    #[test]
    fn the_filter_can_be_changed_while_running() {
        let guard = init(&Identity::of("test"), &TelemetryConfig::default()).expect("started");
        assert!(!tracing::enabled!(tracing::Level::DEBUG));
        guard.set_log_filter("debug").expect("understood");
        assert!(tracing::enabled!(tracing::Level::DEBUG));
        assert!(guard.set_log_filter("=,=").is_err());
        assert!(tracing::enabled!(tracing::Level::DEBUG), "the old filter stays");
    }
}
