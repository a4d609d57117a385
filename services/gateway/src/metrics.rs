use muster_schemas::views::PlannerCycles;
use muster_telemetry::metrics::{
    Counter, Histogram, UpDownCounter, counter, duration_seconds, render_prometheus, up_down_counter,
};

/// Metrics of the gateway.
pub(crate) struct Metrics {
    pub(crate) requests: Counter<u64>,
    pub(crate) refused_requests: Counter<u64>,
    pub(crate) command_seconds: Histogram<f64>,
    pub(crate) connections: UpDownCounter<i64>,
    pub(crate) refused_connections: Counter<u64>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self {
            requests: counter("muster_gateway_requests_total", "Requests of known callers."),
            refused_requests: counter("muster_gateway_refused_requests_total", "Requests of them that were refused."),
            command_seconds: duration_seconds(
                "muster_gateway_command_seconds",
                "From a command that was read to the ledger's answer.",
            ),
            connections: up_down_counter("muster_gateway_connections", "Connections that are served."),
            refused_connections: counter(
                "muster_gateway_refused_connections_total",
                "Connections that were not let in, since there were too many of the caller or in all.",
            ),
        }
    }
}

/// The number of connections that follow events.
pub(crate) fn event_subscribers() -> UpDownCounter<i64> {
    up_down_counter("muster_gateway_event_subscribers", "Connections that follow the events.")
}

/// The cycle times of a planner in this process; `None` if there is none here.
pub(crate) fn planner_cycles() -> Option<PlannerCycles> {
    let text = render_prometheus();
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
        lines.find_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok())
    };
    let micros = |value: f64| (value * 1e6) as u64;
    Some(PlannerCycles {
        count: value("muster_planner_cycle_seconds_count")? as u64,
        total_micros: micros(value("muster_planner_cycle_seconds_sum")?),
        last_micros: value("muster_planner_last_cycle_micros").unwrap_or(0.0) as u64,
        longest_micros: value("muster_planner_longest_cycle_micros").unwrap_or(0.0) as u64,
    })
}
