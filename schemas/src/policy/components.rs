//! When jobs with several components start.

use super::{Backfill, BackfillMode, CandidateOrder};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

/// When jobs with several components start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Components {
    /// In which passes.
    pub start: ComponentStart,
    /// Of a backfill pass and the next, in seconds, 1 to 86,400 (SL-P-15).
    pub interval_seconds: u32,
    /// Backfill passes look for starts of components no further ahead, in seconds; `None` looks as far as something is
    /// known (SL-P-15).
    pub window_seconds: Option<u32>,
    /// Which priority such a job has, whose components can have different ones (SL-P-14).
    pub priority: ComponentPriority,
}

impl Default for Components {
    fn default() -> Self {
        Self {
            start: ComponentStart::default(),
            interval_seconds: 30,
            window_seconds: None,
            priority: ComponentPriority::default(),
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
    /// Only in those of backfill, of which there is one in each interval (SL-P-01). Between them such a job holds up those
    /// behind it in its queues (SL-P-13).
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

/// The mode of a backfill as logs and snapshots have it. Those that were written before there were settings of components
/// have no more than the first three, and so has what is written for a policy that does not set them.
#[derive(Serialize, Deserialize)]
enum StoredMode {
    None,
    Easy,
    Conservative,
    With { mode: BackfillMode, components: Components },
}

/// A backfill as logs and snapshots have it.
#[derive(Serialize, Deserialize)]
struct StoredBackfill {
    mode: StoredMode,
    reservations: Option<u32>,
    candidates: CandidateOrder,
    look_ahead: Option<u32>,
    require_walltime: bool,
}

impl From<Backfill> for StoredBackfill {
    fn from(backfill: Backfill) -> Self {
        let Backfill { mode, reservations, candidates, look_ahead, require_walltime, components } = backfill;
        let mode = match mode {
            _ if components != Components::default() => StoredMode::With { mode, components },
            BackfillMode::None => StoredMode::None,
            BackfillMode::Easy => StoredMode::Easy,
            BackfillMode::Conservative => StoredMode::Conservative,
        };
        Self { mode, reservations, candidates, look_ahead, require_walltime }
    }
}

impl From<StoredBackfill> for Backfill {
    fn from(stored: StoredBackfill) -> Self {
        let StoredBackfill { mode, reservations, candidates, look_ahead, require_walltime } = stored;
        let (mode, components) = match mode {
            StoredMode::None => (BackfillMode::None, Components::default()),
            StoredMode::Easy => (BackfillMode::Easy, Components::default()),
            StoredMode::Conservative => (BackfillMode::Conservative, Components::default()),
            StoredMode::With { mode, components } => (mode, components),
        };
        Self { mode, reservations, candidates, look_ahead, require_walltime, components }
    }
}

impl Serialize for Backfill {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => Self::serialize(self, serializer),
            false => StoredBackfill::from(*self).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Backfill {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.is_human_readable() {
            true => Self::deserialize(deserializer),
            false => Ok(StoredBackfill::deserialize(deserializer)?.into()),
        }
    }
}
