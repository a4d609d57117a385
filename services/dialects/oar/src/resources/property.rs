//! The properties that every resource has.

use super::value::{Kind, Value};
use std::collections::BTreeMap;

/// The properties of a table, each with its type. Filters are checked against them.
pub type Fields = BTreeMap<String, Kind>;

/// The number of a resource.
pub const ID: &str = "resource_id";
/// The type of a resource: `default` for those of nodes.
pub const TYPE: &str = "type";
/// The name of the node of a resource; empty for one without a node, such as a licence.
pub const NODE: &str = "network_address";
/// The state of a resource.
pub const STATE: &str = "state";
/// Until when a node can be had, in seconds since the epoch (OAR-E-01).
pub const AVAILABLE_UPTO: &str = "available_upto";
/// The value of [`AVAILABLE_UPTO`] before a maintenance.
pub const LAST_AVAILABLE_UPTO: &str = "last_available_upto";
/// Whether the resource takes no new jobs: `YES` or `NO`.
pub const DRAIN: &str = "drain";
/// Whether the resource takes best-effort jobs: `YES` or `NO`.
pub const BESTEFFORT: &str = "besteffort";
/// Whether nodes may be deployed: `YES` or `NO`.
pub const DEPLOY: &str = "deploy";
/// Whether an agent pulls the jobs of this node: `YES` or `NO`.
pub const DESKTOP_COMPUTING: &str = "desktop_computing";
/// Resources with a lower number are tried first.
pub const SCHEDULER_PRIORITY: &str = "scheduler_priority";
/// Whether a suspended job holds the resource: `YES` or `NO`.
pub const SUSPENDED_JOBS: &str = "suspended_jobs";

/// The CPUs of a resource: numbers with `+` or commas between them (OAR-X-02).
pub const CPUSET: &str = "cpuset";

/// The value of [`TYPE`] for the resources of nodes.
pub const DEFAULT_TYPE: &str = "default";

/// The names of the system properties: they describe how muster uses a resource, so they cannot be levels (OAR-R-17).
const SYSTEM: [&str; 14] = [
    STATE,
    TYPE,
    "next_state",
    CPUSET,
    BESTEFFORT,
    DEPLOY,
    DRAIN,
    AVAILABLE_UPTO,
    LAST_AVAILABLE_UPTO,
    SCHEDULER_PRIORITY,
    SUSPENDED_JOBS,
    "last_job_date",
    "expiry_date",
    DESKTOP_COMPUTING,
];

/// Whether the property is one of the system.
pub fn is_system(name: &str) -> bool {
    SYSTEM.contains(&name)
}

/// Whether the property exists in every table and can be neither renamed nor removed.
pub fn is_built_in(name: &str) -> bool {
    is_system(name) || name == ID || name == NODE
}

/// The types of the properties that exist in every table.
pub fn built_in() -> Fields {
    let defaults = defaults().into_iter().map(|(name, value)| (name.to_owned(), value.kind()));
    defaults.chain([(ID.to_owned(), Kind::Integer)]).collect()
}

/// The values of a new resource, without its number.
pub fn defaults() -> Vec<(&'static str, Value)> {
    vec![
        (TYPE, Value::text(DEFAULT_TYPE)),
        (NODE, Value::text("")),
        (STATE, Value::text("Alive")),
        ("next_state", Value::text("UnChanged")),
        (CPUSET, Value::text("0")),
        (BESTEFFORT, Value::text("YES")),
        (DEPLOY, Value::text("NO")),
        (DRAIN, Value::text("NO")),
        (DESKTOP_COMPUTING, Value::text("NO")),
        (SUSPENDED_JOBS, Value::text("NO")),
        (AVAILABLE_UPTO, Value::Integer(i64::from(i32::MAX))),
        (LAST_AVAILABLE_UPTO, Value::Integer(0)),
        (SCHEDULER_PRIORITY, Value::Integer(0)),
        ("last_job_date", Value::Integer(0)),
        ("expiry_date", Value::Integer(0)),
    ]
}
