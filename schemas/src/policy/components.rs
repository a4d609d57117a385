//! When jobs with several components start.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// When jobs with several components start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Components {
    /// The passes in which they start.
    pub start: ComponentStart,
    /// Time between a backfill pass and the next, in seconds, 1 to 86,400 (SL-P-15).
    pub interval_seconds: u32,
    /// How far ahead backfill passes look for starts of components, in seconds; `None` means as far as anything is
    /// known (SL-P-15).
    pub window_seconds: Option<u32>,
    /// The priority of such a job, whose components can have different ones (SL-P-14).
    pub priority: ComponentPriority,
    /// Whether components of a job may share a node if they do not fit otherwise (SL-P-07).
    pub share_nodes: bool,
}

impl Default for Components {
    fn default() -> Self {
        Self {
            start: ComponentStart::default(),
            interval_seconds: 30,
            window_seconds: None,
            priority: ComponentPriority::default(),
            share_nodes: false,
        }
    }
}

/// In which passes of the planner jobs with several components start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComponentStart {
    /// In any, as soon as all components fit.
    #[default]
    AnyPass,
    /// Only in backfill passes, one in each interval (SL-P-01). Between them such a job holds up the jobs behind it in
    /// its queues (SL-P-13).
    BackfillPass,
}

/// The priority of a job whose components have different ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComponentPriority {
    /// That of its first component.
    #[default]
    First,
    /// The lowest.
    Min,
    /// The mean, rounded down.
    Avg,
    /// The highest.
    Max,
}
