//! What several ledgers that keep one history say of themselves.

use crate::{ids::Sequence, time::Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The longest name of a ledger, in bytes.
pub const MAX_LEDGER_NAME_BYTES: usize = 255;

/// What one of several ledgers does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LedgerRole {
    /// It decides and answers.
    Leader,
    /// It follows the leader, and can take its place.
    Standby,
    /// It follows, and does not have everything yet.
    #[default]
    Joining,
    /// It was stopped, or has not reported for seconds.
    Stopped,
}

impl LedgerRole {
    /// The role in a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Leader => "leader",
            Self::Standby => "standby",
            Self::Joining => "joining",
            Self::Stopped => "stopped",
        }
    }
}

/// What a ledger reports of itself over the bus, about once a second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerReport {
    /// Its name.
    pub name: String,
    /// What it does.
    pub role: LedgerRole,
    /// The epoch of the reign that it leads or follows; 0 if it knows none.
    pub epoch: u64,
    /// The last record of its log; 0 if it has none.
    pub last: Sequence,
    /// How many messages of the stream of rounds it has not applied yet; `None` if it does not know.
    pub lag: Option<u64>,
}

/// What a ledger that follows tells the one that leads, if answers wait for it: up to where it has written its log to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundKept {
    /// When the stream of rounds was created.
    pub stream_created: Timestamp,
    /// The place in it of the last message that is applied.
    pub position: u64,
}

/// One of several ledgers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LedgerView {
    /// Its name.
    pub name: String,
    /// What it does.
    pub role: LedgerRole,
    /// The epoch of the reign that it leads or follows; 0 if it knows none.
    pub epoch: u64,
    /// The last record of its log when it reported; 0 if it had none.
    pub last: Sequence,
    /// How many messages of the stream that orders the records it had not applied yet; `null` if it did not know.
    pub lag: Option<u64>,
    /// When it reported last, by the clock of the gateway.
    pub reported: Timestamp,
}

/// The ledgers that keep one history; none if the cluster has one ledger without others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LedgersPage {
    /// All that have reported since the gateway was started, by name.
    pub ledgers: Vec<LedgerView>,
}

/// Which ledger leads next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HandOverRequest {
    /// The name of a standby; any one if it is left out.
    pub to: Option<String>,
}
