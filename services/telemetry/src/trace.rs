//! One job is one trace: how its context enters and leaves spans.
//!
//! The context of a job begins at its submission ([`root_context`]) and is stored with its records. A service that
//! works for a job opens a span inside that context ([`in_trace`]) and passes on the context of its span
//! ([`context_of`]). While nothing is exported, spans have no identity, and the incoming context is passed on
//! unchanged.

use muster_schemas::event::TraceContext;
use opentelemetry::{
    Context,
    trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, TracerProvider as _},
};
use opentelemetry_sdk::trace::{IdGenerator as _, RandomIdGenerator, SdkTracerProvider};
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer, filter::Targets, registry::LookupSpan};

/// W3C flag: the trace is recorded.
const SAMPLED: u8 = 1;

/// The context of the current span, if spans are exported.
pub fn current_context() -> Option<TraceContext> {
    own_context(&Span::current())
}

/// The context to pass on from the span in which a command enters the system; `given` is the command's own context, if
/// any. If spans are not exported either, a new trace begins.
pub fn root_context(span: &Span, given: TraceContext) -> TraceContext {
    let context = context_of(span, given);
    if context.is_some() { context } else { new_trace() }
}

/// A new trace. It is marked as sampled, so that services that export do so.
pub fn new_trace() -> TraceContext {
    let ids = RandomIdGenerator::default();
    TraceContext { trace_id: ids.new_trace_id().to_bytes(), span_id: ids.new_span_id().to_bytes(), flags: SAMPLED }
}

/// The span as part of the trace of `parent`, if there is one. Call it before the span is entered for the first time.
pub fn in_trace(span: Span, parent: TraceContext) -> Span {
    if parent.is_some() && !span.is_disabled() {
        // It fails if nothing is exported; then there is no trace to join.
        let _ = span.set_parent(Context::new().with_remote_span_context(to_span_context(parent)));
    }
    span
}

/// The context for what follows from the span; `otherwise` if spans are not exported.
pub fn context_of(span: &Span, otherwise: TraceContext) -> TraceContext {
    own_context(span).unwrap_or(otherwise)
}

fn own_context(span: &Span) -> Option<TraceContext> {
    if span.is_disabled() {
        return None;
    }
    let context = span.context();
    let span_context = context.span().span_context().clone();
    span_context.is_valid().then(|| TraceContext {
        trace_id: span_context.trace_id().to_bytes(),
        span_id: span_context.span_id().to_bytes(),
        flags: span_context.trace_flags().to_u8(),
    })
}

fn to_span_context(context: TraceContext) -> SpanContext {
    SpanContext::new(
        TraceId::from_bytes(context.trace_id),
        SpanId::from_bytes(context.span_id),
        TraceFlags::new(context.flags),
        true,
        TraceState::default(),
    )
}

/// Turns muster's own spans into OpenTelemetry's. Libraries' spans stay out: they would be most of the volume.
pub(crate) fn span_layer<S>(provider: &SdkTracerProvider) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("muster"))
        .with_threads(false)
        .with_filter(Targets::new().with_target("muster", tracing::Level::DEBUG))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_collector_the_context_that_came_in_is_passed_on() {
        let context = new_trace();
        let span = in_trace(tracing::debug_span!("work"), context);
        assert_eq!(context_of(&span, context), context);
        assert_eq!(current_context(), None);
    }

    #[test]
    fn new_traces_differ_and_are_sampled() {
        let span = tracing::debug_span!("command");
        let (one, other) = (new_trace(), root_context(&span, TraceContext::default()));
        assert!(one.is_some() && one.flags & SAMPLED == SAMPLED);
        assert!(other.is_some() && one.trace_id != other.trace_id);
        assert_eq!(root_context(&span, one), one);
    }
}
