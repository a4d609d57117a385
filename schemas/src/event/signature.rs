//! Signatures of the ledger.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A signature of 64 bytes, in two halves because serde supports arrays only up to 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignatureBytes {
    /// The first half.
    pub r: [u8; 32],
    /// The second half.
    pub s: [u8; 32],
}
