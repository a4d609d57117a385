//! When jobs with several components start.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// When jobs with several components start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Components {
    /// In which passes.
    pub start: ComponentStart,
    /// Time between a backfill pass and the next, in seconds, 1 to 86,400 (SL-P-15).
    pub interval_seconds: u32,
    /// Backfill passes look for starts of components no further ahead, in seconds; `None` looks as far as something is
    /// known (SL-P-15).
    pub window_seconds: Option<u32>,
    /// Which priority such a job has, whose components can have different ones (SL-P-14).
    pub priority: ComponentPriority,
    /// Whether components of a job may be on the same node where they do not fit otherwise (SL-P-07).
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
    /// Only in those of backfill, of which there is one in each interval (SL-P-01). Between them such a job holds up
    /// those behind it in its queues (SL-P-13).
    BackfillPass,
}

/// Which priority a job has whose components have different ones.
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
