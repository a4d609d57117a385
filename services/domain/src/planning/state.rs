//! The planner's input besides jobs and nodes: the policy in force, advance reservations, and whether promises are
//! worth looking at again.

use crate::reservations::Reservation;
use muster_schemas::{JobId, Sequence, Timestamp, plan::PlannedComponent, policy::Policy};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

/// The planner's input besides jobs and nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Planning {
    pub(crate) policy: Option<Arc<Policy>>,
    pub(crate) reservations: BTreeMap<Arc<str>, Reservation>,
    /// The last record that freed something, counted since there is a policy.
    pub(crate) freed: Sequence,
    /// The last record that the last plan to change a promise had seen.
    pub(crate) promised_after: Sequence,
}

impl Planning {
    /// The policy in force.
    pub(crate) fn policy(&self) -> &Arc<Policy> {
        static FIRST: LazyLock<Arc<Policy>> = LazyLock::new(Arc::default);
        self.policy.as_ref().unwrap_or(&FIRST)
    }
}

/// The passes of backfill that start jobs with several components, as far as the next one goes by those before (SL-P-03).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillPasses {
    /// The number of the last one; 0 before the first.
    pub number: u64,
    /// The time that it planned for.
    pub at: Timestamp,
    /// When and where it thinks that the components of jobs start that it looked at, and that have waited on since.
    pub jobs: BTreeMap<JobId, Vec<PlannedComponent>>,
}
