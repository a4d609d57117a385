//! Large contents that many orders share: the environment of a job, its script, the nodes of a wide run. An order
//! names them by their hash, and the node fetches those that it does not have yet.

use crate::{
    codec::{self, CodecError},
    command::Refusal,
    job::Program,
    node::{LaunchOrder, NodeOrder},
};
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

/// An order some of which is named by its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShortOrder {
    /// The order to launch something, without that. Variables that it has go over those of the environment.
    pub order: NodeOrder,
    /// The missing contents.
    pub missing: Missing,
}

/// The contents that an order names by their hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The environment of the job or step: a map of texts.
    pub environment: Option<ContentHash>,
    /// The text of the script.
    pub script: Option<ContentHash>,
    /// See [`LaunchOrder::nodes`].
    pub nodes: Option<ContentHash>,
}

impl Missing {
    /// Whether nothing is.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// All of it.
    pub fn hashes(&self) -> impl Iterator<Item = ContentHash> {
        [self.environment, self.script, self.nodes].into_iter().flatten()
    }
}

/// Why an order cannot be made whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// A content has another form.
    #[error(transparent)]
    Content(#[from] CodecError),
    /// A content is not there, or is of no use to this order.
    #[error("the content {0:?} is missing or of no use to the order")]
    Unfit(ContentHash),
}

impl ShortOrder {
    /// The whole order, with the bytes of each content that is missing.
    ///
    /// # Errors
    /// One is not there, is of another kind, or the order does not launch what it is for.
    pub fn fill<'a>(self, content: impl Fn(ContentHash) -> Option<&'a [u8]>) -> Result<NodeOrder, FillError> {
        let Self { mut order, missing } = self;
        let Some(launch) = order.launch_mut() else {
            return missing.hashes().next().map_or(Ok(order), |hash| Err(FillError::Unfit(hash)));
        };
        if let Some(hash) = missing.environment {
            let own = std::mem::replace(&mut launch.environment, read(hash, &content)?);
            launch.environment.extend(own);
        }
        if let Some(hash) = missing.script {
            let Program::Script { text, .. } = &mut launch.launch.program else { return Err(FillError::Unfit(hash)) };
            *text = read(hash, &content)?;
        }
        if let Some(hash) = missing.nodes {
            launch.nodes = read(hash, &content)?;
        }
        Ok(order)
    }
}

fn read<'a, T: serde::de::DeserializeOwned>(
    hash: ContentHash,
    content: impl Fn(ContentHash) -> Option<&'a [u8]>,
) -> Result<T, FillError> {
    Ok(codec::decode(content(hash).ok_or(FillError::Unfit(hash))?)?)
}

impl NodeOrder {
    /// The launch that it orders or holds, if there is one and it is complete.
    pub fn launch(&self) -> Option<&LaunchOrder> {
        match self {
            Self::Launch(launch) | Self::Hold(launch) => Some(launch),
            Self::LaunchTasks(tasks) => Some(&tasks.launch),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn launch_mut(&mut self) -> Option<&mut LaunchOrder> {
        match self {
            Self::Launch(launch) | Self::Hold(launch) => Some(launch),
            Self::LaunchTasks(tasks) => Some(&mut tasks.launch),
            _ => None,
        }
    }
}

/// A node's request to the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentRequest {
    /// The node, which was sent an order that names the content.
    pub node: String,
    /// The content.
    pub hash: ContentHash,
    /// From which byte on.
    pub offset: u64,
}

/// Bytes that are encoded and decoded as a whole and not one by one.
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
        /// How many bytes it has in all.
        total_bytes: u64,
        /// Those from the offset on, as many as a message takes.
        part: ContentBytes,
    },
    /// The node was sent no order that names it, or the ledger no longer has it: a heartbeat brings the order again.
    Refused(Refusal),
}

#[cfg(test)]
mod tests {
    use super::*;

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
