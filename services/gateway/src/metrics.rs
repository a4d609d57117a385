use muster_telemetry::metrics::{Counter, Histogram, UpDownCounter, counter, duration_seconds, up_down_counter};

/// What the gateway counts.
pub(crate) struct Metrics {
    pub(crate) requests: Counter<u64>,
    pub(crate) refused_requests: Counter<u64>,
    pub(crate) command_seconds: Histogram<f64>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self {
            requests: counter("muster_gateway_requests_total", "Requests of callers who are known."),
            refused_requests: counter("muster_gateway_refused_requests_total", "Requests of them that were refused."),
            command_seconds: duration_seconds(
                "muster_gateway_command_seconds",
                "From a command that was read to the ledger's answer.",
            ),
        }
    }
}

/// How many follow the events.
pub(crate) fn event_subscribers() -> UpDownCounter<i64> {
    up_down_counter("muster_gateway_event_subscribers", "Connections that follow the events.")
}
