//! An advance reservation.

use muster_schemas::{
    NodeId, Timestamp,
    plan::{ReservationSpec, ReservedNodes},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, sync::Arc};

/// An advance reservation that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Its specification.
    pub spec: Arc<ReservationSpec>,
    /// Its nodes; empty until a planner has chosen them.
    pub nodes: BTreeSet<NodeId>,
    /// Whether its beginning has been recorded.
    pub begun: bool,
}

impl Reservation {
    /// Whether its nodes are kept at this time.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.spec.start <= now && now < self.spec.end
    }

    /// Whether it overlaps a period.
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

    /// Whether a planner has yet to choose its nodes.
    pub fn is_unplaced(&self) -> bool {
        self.nodes.is_empty() && matches!(self.spec.nodes, ReservedNodes::Count { .. })
    }

    /// When it is next due: at its start, then at its end.
    pub(crate) fn due(&self) -> Timestamp {
        if self.begun { self.spec.end } else { self.spec.start }
    }
}
