//! Export to an OpenTelemetry collector, from threads of the SDK: a slow or missing collector costs spans and metrics,
//! never a scheduler's time.

use crate::{Identity, metrics};
use anyhow::{Context as _, ensure};
use opentelemetry::KeyValue;
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SdkTracerProvider, SpanData, SpanExporter as ExportSpans},
};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// The longest time of an export.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the end of the process waits for the last export.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// Starts to export spans and metrics.
pub(crate) fn start(identity: &Identity, endpoint: &str) -> anyhow::Result<SdkTracerProvider> {
    ensure!(
        endpoint.starts_with("http://"),
        "`{endpoint}` is not the address of a collector: expected plain http, such as http://127.0.0.1:4318"
    );
    let base = endpoint.trim_end_matches('/');
    let attributes = identity.attributes().into_iter().map(|(name, value)| KeyValue::new(name, value));
    let resource = Resource::builder().with_attributes(attributes).build();
    let metric_exporter = MetricExporter::builder()
        .with_http()
        .with_endpoint(format!("{base}/v1/metrics"))
        .with_timeout(EXPORT_TIMEOUT)
        .build()
        .with_context(|| format!("metrics cannot be exported to {endpoint}"))?;
    metrics::export_with(metric_exporter, resource.clone())?;
    let span_exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(format!("{base}/v1/traces"))
        .with_timeout(EXPORT_TIMEOUT)
        .build()
        .with_context(|| format!("traces cannot be exported to {endpoint}"))?;
    let exporter = Reporting { inner: span_exporter, failing: AtomicBool::new(false) };
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

/// Sends the rest. This runs in a separate thread, because the exporter's client must not be waited for or dropped
/// inside an async runtime.
pub(crate) fn shut_down(provider: SdkTracerProvider) {
    let ending = std::thread::spawn(move || {
        let _ = provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT);
        metrics::shut_down(SHUTDOWN_TIMEOUT);
    });
    let _ = ending.join();
}

/// Logs once when exports begin to fail, and once when they work again; the SDK itself is silent.
#[derive(Debug)]
struct Reporting {
    inner: SpanExporter,
    failing: AtomicBool,
}

impl ExportSpans for Reporting {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let result = self.inner.export(batch).await;
        let failed_before = self.failing.swap(result.is_err(), Ordering::Relaxed);
        match &result {
            Err(error) if !failed_before => tracing::warn!("traces are not reaching the collector: {error}"),
            Ok(()) if failed_before => tracing::info!("traces reach the collector again"),
            _ => {}
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}
