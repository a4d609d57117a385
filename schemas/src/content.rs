//! Large contents that many orders share: the environment of a job, its script, the nodes of a wide run. An order
//! names them by their hash, and the node fetches those that it does not have yet.

use crate::refusal::Refusal;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Visitor};
use std::fmt;

/// The key of a content: the BLAKE3 hash of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The contents that an order names by their hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The environment of the job or step: a map of texts.
    pub environment: Option<ContentHash>,
    /// The text of the script.
    pub script: Option<ContentHash>,
    /// See [`LaunchOrder::nodes`](crate::node::LaunchOrder::nodes).
    pub nodes: Option<ContentHash>,
}

impl Missing {
    /// Whether nothing is missing.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The hashes of all missing contents.
    pub fn hashes(&self) -> impl Iterator<Item = ContentHash> {
        [self.environment, self.script, self.nodes].into_iter().flatten()
    }
}

/// A node's request to the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentRequest {
    /// The node, which got an order that names the content.
    pub node: String,
    /// The content.
    pub hash: ContentHash,
    /// The offset of the first byte.
    pub offset: u64,
}

/// Bytes that are encoded and decoded as a whole instead of one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentBytes(pub Vec<u8>);

impl Serialize for ContentBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for ContentBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = ContentBytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<ContentBytes, E> {
                Ok(ContentBytes(bytes.to_vec()))
            }

            fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<ContentBytes, E> {
                Ok(ContentBytes(bytes))
            }
        }
        deserializer.deserialize_byte_buf(Bytes)
    }
}

/// The ledger's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContentAnswer {
    /// Part of it.
    Part {
        /// Total number of bytes.
        total_bytes: u64,
        /// The bytes from the offset on, limited by the size of a message.
        part: ContentBytes,
    },
    /// The node got no order that names it, or the ledger no longer has it: a heartbeat brings the order again.
    Refused(Refusal),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;

    #[test]
    fn parts_come_back_as_they_were() {
        for bytes in [Vec::new(), vec![7], (0..=255).cycle().take(100_000).collect()] {
            let answer = ContentAnswer::Part { total_bytes: 9, part: ContentBytes(bytes) };
            let encoded = codec::encode(&answer).unwrap();
            assert_eq!(codec::decode::<ContentAnswer>(&encoded).unwrap(), answer);
            assert!(codec::decode::<ContentAnswer>(&encoded[..encoded.len() - 1]).is_err());
        }
    }
}
