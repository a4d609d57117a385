//! For tests: collects the spans of all services of this process.

use crate::trace;
use muster_schemas::event::TraceContext;
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SdkTracerProvider, SpanData, SpanExporter},
};
use std::sync::{Arc, Mutex};
use tracing_subscriber::{layer::SubscriberExt as _, util::SubscriberInitExt as _};

/// A span that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectedSpan {
    /// The crate that opened it, such as `muster_ledger`.
    pub service: String,
    /// Its name.
    pub name: String,
    /// The job that it names, as text.
    pub job: Option<String>,
    /// Its own context.
    pub context: TraceContext,
    /// The parent span; all zero for the first of a trace.
    pub parent_span_id: [u8; 8],
}

/// Holds all spans that have ended since it was installed.
#[derive(Clone, Debug, Default)]
pub struct SpanCollector {
    spans: Arc<Mutex<Vec<CollectedSpan>>>,
}

impl SpanCollector {
    /// Collects the spans of this process from now on, instead of [`crate::init`].
    ///
    /// # Panics
    /// If telemetry has been started already in this process.
    pub fn install() -> Self {
        let collector = Self::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(collector.clone()).build();
        let started = tracing_subscriber::registry().with(trace::span_layer(&provider)).try_init();
        started.expect("one collector in a process");
        collector
    }

    /// The spans of a trace that have ended so far, in the order in which they ended.
    pub fn spans_of(&self, trace_id: [u8; 16]) -> Vec<CollectedSpan> {
        self.all().into_iter().filter(|span| span.context.trace_id == trace_id).collect()
    }

    /// All spans that have ended so far.
    pub fn all(&self) -> Vec<CollectedSpan> {
        self.spans.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

impl SpanExporter for SpanCollector {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let mut spans = self.spans.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        spans.extend(batch.into_iter().map(collected));
        Ok(())
    }
}

fn collected(span: SpanData) -> CollectedSpan {
    let attribute = |names: &[&str]| {
        let found = span.attributes.iter().find(|attribute| names.contains(&attribute.key.as_str()));
        found.map(|attribute| attribute.value.as_str().into_owned())
    };
    let module = attribute(&["target", "code.namespace"]).unwrap_or_default();
    CollectedSpan {
        service: module.split("::").next().unwrap_or_default().to_owned(),
        job: attribute(&["job"]),
        name: span.name.into_owned(),
        context: TraceContext {
            trace_id: span.span_context.trace_id().to_bytes(),
            span_id: span.span_context.span_id().to_bytes(),
            flags: span.span_context.trace_flags().to_u8(),
        },
        parent_span_id: span.parent_span_id.to_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{context_of, in_trace, new_trace};

    #[test]
    fn spans_joined_by_a_passed_context_are_one_trace() {
        let collector = SpanCollector::install();
        let root = new_trace();
        let first = in_trace(tracing::debug_span!("submit"), root);
        let passed_on = context_of(&first, root);
        drop(first);
        let second = in_trace(tracing::debug_span!("launch", job = %7), passed_on);
        second.in_scope(|| drop(tracing::debug_span!("spawn")));
        drop(second);
        drop(tracing::debug_span!("unrelated"));

        let spans = collector.spans_of(root.trace_id);
        let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["submit", "spawn", "launch"]);
        assert_eq!(spans[0].parent_span_id, root.span_id);
        assert_eq!(spans[2].parent_span_id, spans[0].context.span_id);
        assert_eq!(spans[1].parent_span_id, spans[2].context.span_id);
        assert!(spans.iter().all(|span| span.service == "muster_telemetry"), "{spans:?}");
        assert_eq!([&spans[0].job, &spans[2].job], [&None, &Some("7".to_owned())]);
        assert_eq!(collector.all().len(), 4);
    }
}
