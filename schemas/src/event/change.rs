//! Changes that people make to jobs.

use crate::{
    job::{Dependencies, Launch, Notification},
    resources::Alternative,
    time::Timestamp,
    walltimes::WalltimeIncrease,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A change to a waiting job or, for some fields, a running one. `None` leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JobChange {
    /// A new name.
    pub name: Option<String>,
    /// A new queue.
    pub queue: Option<String>,
    /// A new account.
    pub account: Option<String>,
    /// A new priority.
    pub priority: Option<i64>,
    /// A new begin time; one in the past means none.
    pub begin: Option<Timestamp>,
    /// A new walltime for every alternative; also for a running job.
    pub walltime_seconds: Option<u64>,
    /// New alternatives; only for a waiting job.
    pub alternatives: Option<Vec<Alternative>>,
    /// New dependencies; only for a waiting job.
    pub dependencies: Option<Dependencies>,
    /// Maximum number of tasks of the array running at a time.
    pub max_running: Option<u32>,
    /// A new reservation, empty for none; only for a waiting job.
    pub reservation: Option<String>,
    /// A new deadline; only for a waiting job.
    pub deadline: Option<Timestamp>,
    /// Whether muster may restart the job after a node was lost; also for a running job.
    pub requeue_on_node_lost: Option<bool>,
    /// New values of attributes, by name; an empty value removes the attribute. Also for a running job.
    pub attributes: BTreeMap<String, String>,
    /// The component to change, for fields that each component has; `None` means all components.
    pub component: Option<u32>,
    /// More walltime for a running job, also from its owner. In a record: what is pending from then on (OAR-G-16).
    pub increase: Option<WalltimeIncrease>,
    /// The mails that the job causes from then on, in place of those before; also for a running job. Its programs stay.
    pub mails: Option<Vec<Notification>>,
    /// New files for its output; only for a waiting job with one component.
    pub output: Option<OutputFiles>,
}

/// Where the output of a job goes, as [patterns](crate::output).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OutputFiles {
    /// The file of standard output; `None` for the default.
    pub stdout: Option<String>,
    /// The file of standard error; `None` for the same file.
    pub stderr: Option<String>,
}

impl OutputFiles {
    /// Puts them in the place of those of a launch.
    pub fn replace(&self, launch: &mut Launch) {
        launch.stdout.clone_from(&self.stdout);
        launch.stderr.clone_from(&self.stderr);
    }
}

impl JobChange {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self { component: self.component, ..Self::default() }
    }
}
