//! The id of a cluster.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// 16 bytes that identify a log uniquely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct UuidBytes(pub [u8; 16]);

impl std::fmt::Display for UuidBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        uuid::Uuid::from_bytes(self.0).fmt(f)
    }
}
