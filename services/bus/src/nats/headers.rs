//! Headers of NATS messages.

use crate::Message;
use async_nats::HeaderMap;
use muster_schemas::event::TraceContext;

/// Room for headers in addition to the payload of a message.
pub(super) const HEADER_BYTES: usize = 4096;

/// W3C trace context.
const TRACE_PARENT: &str = "traceparent";
/// First sequence of a message of the log stream.
pub(super) const FIRST_SEQUENCE: &str = "Muster-First-Sequence";
/// Last sequence of a message of the log stream.
pub(super) const LAST_SEQUENCE: &str = "Muster-Last-Sequence";
/// On a message of the log stream: the log that it belongs to, in hexadecimal digits.
pub(super) const LOG: &str = "Muster-Log";
/// On a message of the log stream: the process that appended it, in hexadecimal digits.
pub(super) const WRITER: &str = "Muster-Writer";
/// Marks a reply as a failure and says why.
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

/// 16 bytes as they appear in a header.
pub(super) fn hexadecimal(bytes: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(bytes))
}

/// The 16 bytes in a header.
pub(super) fn sixteen_bytes(headers: &HeaderMap, name: &str) -> Option<[u8; 16]> {
    let text = headers.get(name)?.as_str();
    (text.len() == 32).then(|| u128::from_str_radix(text, 16).ok()).flatten().map(u128::to_be_bytes)
}

/// A message that arrived, with its subject.
pub(super) fn received(arrived: async_nats::Message) -> (String, Message) {
    let parent = arrived.headers.as_ref().and_then(|headers| headers.get(TRACE_PARENT));
    let trace = parent.and_then(|parent| TraceContext::from_traceparent(parent.as_str())).unwrap_or_default();
    (arrived.subject.to_string(), Message { payload: arrived.payload, trace })
}
