//! Signatures of the ledger.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A signature: 64 bytes, which serde's arrays do not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignatureBytes {
    /// The first half.
    pub r: [u8; 32],
    /// The second half.
    pub s: [u8; 32],
}
