//! What stands in the headers of NATS messages.

use crate::Message;
use async_nats::HeaderMap;
use muster_schemas::event::TraceContext;

/// W3C trace context.
const TRACE_PARENT: &str = "traceparent";
/// First sequence of a message of the log stream.
pub(super) const FIRST_SEQUENCE: &str = "Muster-First-Sequence";
/// Last sequence of a message of the log stream.
pub(super) const LAST_SEQUENCE: &str = "Muster-Last-Sequence";
/// On a reply that is none: why.
pub(super) const NO_REPLY: &str = "Muster-No-Reply";

pub(super) fn of_trace(trace: &TraceContext) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(parent) = trace.to_traceparent() {
        headers.insert(TRACE_PARENT, parent);
    }
    headers
}

/// The number in a header.
pub(super) fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.as_str().parse().ok()
}

/// A message that arrived, with its subject.
pub(super) fn received(arrived: async_nats::Message) -> (String, Message) {
    let parent = arrived.headers.as_ref().and_then(|headers| headers.get(TRACE_PARENT));
    let trace = parent.and_then(|parent| TraceContext::from_traceparent(parent.as_str())).unwrap_or_default();
    (arrived.subject.to_string(), Message { payload: arrived.payload, trace })
}
