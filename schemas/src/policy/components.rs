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

impl Components {
    /// Whether nothing is set: all is as it is by default, or as it was before components could share nodes.
    pub(super) fn is_unset(self) -> bool {
        self == Self::default() || self.is_plain()
    }

    /// Whether it has all that a policy came with before there were settings of components.
    fn is_plain(self) -> bool {
        self == Self { share_nodes: false, ..Self::default() }
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
/// have no more than the first three, and so has what is written for a policy that does not set them. Before components
/// could share nodes there was no more than the first four, and so it is for a policy under which they do not: whatever the
/// default becomes, a log reads as it was planned by.
#[derive(Serialize, Deserialize)]
enum StoredMode {
    None,
    Easy,
    Conservative,
    With { mode: BackfillMode, components: StoredComponents },
    Sharing { mode: BackfillMode, components: StoredComponents },
}

/// Settings of components as logs and snapshots have them, but whether they share nodes.
#[derive(Serialize, Deserialize)]
struct StoredComponents {
    start: ComponentStart,
    interval_seconds: u32,
    window_seconds: Option<u32>,
    priority: ComponentPriority,
}

impl From<Components> for StoredComponents {
    fn from(components: Components) -> Self {
        let Components { start, interval_seconds, window_seconds, priority, share_nodes: _ } = components;
        Self { start, interval_seconds, window_seconds, priority }
    }
}

impl StoredComponents {
    fn with(self, share_nodes: bool) -> Components {
        let Self { start, interval_seconds, window_seconds, priority } = self;
        Components { start, interval_seconds, window_seconds, priority, share_nodes }
    }
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
            _ if components.share_nodes => StoredMode::Sharing { mode, components: components.into() },
            _ if !components.is_plain() => StoredMode::With { mode, components: components.into() },
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
        let plain = Components { share_nodes: false, ..Components::default() };
        let (mode, components) = match mode {
            StoredMode::None => (BackfillMode::None, plain),
            StoredMode::Easy => (BackfillMode::Easy, plain),
            StoredMode::Conservative => (BackfillMode::Conservative, plain),
            StoredMode::With { mode, components } => (mode, components.with(false)),
            StoredMode::Sharing { mode, components } => (mode, components.with(true)),
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
