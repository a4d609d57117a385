//! Advance reservations, and times in which nodes serve no jobs.

use crate::{
    ids::Sequence,
    plan::{NodeClosure, ReservationSpec},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An advance reservation that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReservationView {
    /// The request.
    pub spec: ReservationSpec,
    /// Names of its nodes; empty until the planner has chosen them.
    pub nodes: Vec<String>,
    /// Whether it has begun.
    pub begun: bool,
}

/// All reservations that are not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReservationsPage {
    /// By name.
    pub reservations: Vec<ReservationView>,
    /// The answer shows the state after this record.
    pub sequence: Sequence,
    /// The time of that record.
    pub time: Timestamp,
}

/// The times in which nodes serve no jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClosuresRequest {
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// All closures, the same for each node, in order of time and without overlap; an empty list opens the nodes.
    pub closures: Vec<NodeClosure>,
}
