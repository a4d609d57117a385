//! The planner's input besides jobs and nodes: the policy in force, advance reservations, and whether promises are
//! worth looking at again.

use muster_schemas::{
    JobId, NodeId, Sequence, Timestamp,
    plan::{PlannedComponent, ReservationSpec, ReservedNodes},
    policy::Policy,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

/// An advance reservation that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Its specification.
    pub spec: Arc<ReservationSpec>,
    /// Its nodes; none while a planner has still to choose them.
    pub nodes: BTreeSet<NodeId>,
    /// Whether a record says that it has begun.
    pub begun: bool,
}

impl Reservation {
    /// Whether its nodes are kept at that time.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.spec.start <= now && now < self.spec.end
    }

    /// Whether it and another time have a moment in common.
    pub(crate) fn overlaps(&self, start: Timestamp, end: Timestamp) -> bool {
        self.spec.start < end && start < self.spec.end
    }

    /// Whether a job of this user and account may run in it.
    pub fn admits(&self, user: &str, account: Option<&str>) -> bool {
        let spec = &self.spec;
        (spec.users.is_empty() && spec.accounts.is_empty())
            || spec.users.iter().any(|allowed| allowed == user)
            || account.is_some_and(|account| spec.accounts.iter().any(|allowed| allowed == account))
    }

    /// Whether a planner has still to choose its nodes.
    pub fn is_unplaced(&self) -> bool {
        self.nodes.is_empty() && matches!(self.spec.nodes, ReservedNodes::Count { .. })
    }

    /// When it is due to be looked at: at its start, then at its end.
    pub(crate) fn due(&self) -> Timestamp {
        if self.begun { self.spec.end } else { self.spec.start }
    }
}

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
