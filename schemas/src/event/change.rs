//! Changes that people make to jobs.

use crate::{job::Dependencies, resources::Alternative, time::Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A change to a job that waits (or, for some fields, runs). `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JobChange {
    /// A new name.
    pub name: Option<String>,
    /// Another queue.
    pub queue: Option<String>,
    /// Another account.
    pub account: Option<String>,
    /// Another priority.
    pub priority: Option<i64>,
    /// Another begin time; one in the past means none.
    pub begin: Option<Timestamp>,
    /// Another walltime for every alternative; also of a running job.
    pub walltime_seconds: Option<u64>,
    /// Other alternatives; only of a waiting job.
    pub alternatives: Option<Vec<Alternative>>,
    /// Other dependencies; only of a waiting job.
    pub dependencies: Option<Dependencies>,
    /// Maximum number of tasks of the array running at a time.
    pub max_running: Option<u32>,
    /// Another reservation, empty for none; only of a waiting job.
    pub reservation: Option<String>,
    /// Another deadline; only of a waiting job.
    pub deadline: Option<Timestamp>,
    /// Whether muster may start the job a second time after a node was lost; also of a running job.
    pub requeue_on_node_lost: Option<bool>,
    /// Other attributes of the job, by their names, an empty one for none; also of a running job.
    pub attributes: BTreeMap<String, String>,
    /// Only this component, as far as components have it for themselves; `None` means all.
    pub component: Option<u32>,
}

impl JobChange {
    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        *self == Self { component: self.component, ..Self::default() }
    }
}
