//! The planner's input besides jobs and nodes: the current policy, advance reservations, and whether promises should be
//! revised.

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
    /// The last record since the first policy that freed something.
    pub(crate) freed: Sequence,
    /// The last record seen by the last plan that changed a promise.
    pub(crate) promised_after: Sequence,
}

impl Planning {
    /// The current policy.
    pub(crate) fn policy(&self) -> &Arc<Policy> {
        static FIRST: LazyLock<Arc<Policy>> = LazyLock::new(Arc::default);
        self.policy.as_ref().unwrap_or(&FIRST)
    }
}

/// The backfill passes that start jobs with several components, as far as the next one builds on earlier ones
/// (SL-P-03).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillPasses {
    /// The number of the last pass; 0 before the first.
    pub number: u64,
    /// The time for which it planned.
    pub at: Timestamp,
    /// The predicted start and place of the components of each job that it examined and that still waits.
    pub jobs: BTreeMap<JobId, Vec<PlannedComponent>>,
}
