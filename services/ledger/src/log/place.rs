//! Where the end of a log stands in the stream of rounds.

use muster_bus::rounds::Position;
use muster_schemas::time::Timestamp;

/// The place that a commit has in the stream of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// When the stream was created.
    pub created: Timestamp,
    /// The place of the commit's message.
    pub position: Position,
}

impl Place {
    pub(super) fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.created.0.to_be_bytes());
        bytes[8..].copy_from_slice(&self.position.0.to_be_bytes());
        bytes
    }

    pub(super) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (created, position) = bytes.split_first_chunk::<8>()?;
        let position = Position(u64::from_be_bytes(position.try_into().ok()?));
        Some(Self { created: Timestamp(i64::from_be_bytes(*created)), position })
    }
}
