//! Fences of parallel programs between nodes (SL-W-04).
//!
//! The tasks of a step on one node are a *place* of the step. In a fence each place contributes some bytes, and gets
//! those of all once the last has come. The first place's node *leads*: the others send it their contribution and wait
//! for the answer. Requests can be repeated: a contribution counts once, and an answer is kept until the next fence is
//! over. So lost messages, and executors that restart, cost time and nothing else.

use crate::{
    content::ContentBytes,
    ids::{RunId, StepId},
};
use serde::{Deserialize, Serialize};

/// The most that a place contributes to a fence, in bytes.
pub const MAX_CONTRIBUTION_BYTES: usize = 64 << 20;
/// The most that one message carries of a contribution or of an answer, in bytes.
pub const MAX_PIECE_BYTES: usize = 512 << 10;

/// A request to the node that leads the fences of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FenceRequest {
    /// The run that the step is in.
    pub run: RunId,
    /// The step.
    pub step: StepId,
    /// The place that asks.
    pub place: u32,
    /// The request.
    pub ask: FenceAsk,
}

/// A request about fences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FenceAsk {
    /// The place is in a fence. The answer to the last piece comes when all others are, or after a time.
    Meet {
        /// The number of the fence, from 0.
        number: u32,
        /// Where this piece of the contribution begins.
        offset: u64,
        /// The piece.
        bytes: ContentBytes,
        /// Whether nothing comes after it.
        is_last: bool,
        /// How long to wait for the others, in milliseconds.
        wait_millis: u32,
    },
    /// More of the answer.
    Collect {
        /// The number of the fence.
        number: u32,
        /// Where the piece begins.
        offset: u64,
    },
    /// The tasks of this place have ended: they come to no other fence.
    Leave,
}

/// The answer to such a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FenceReply {
    /// The contribution has arrived up to this offset.
    Received(u64),
    /// All places are there: a piece of what they have contributed, as [`join`] makes it.
    Met {
        /// Where the piece begins.
        offset: u64,
        /// The piece.
        bytes: ContentBytes,
        /// The length of the whole.
        length: u64,
    },
    /// Somebody is missing. Ask again.
    NotYet,
    /// The node does not lead fences of the step: it has not arrived there, or is over.
    Unknown,
    /// This fence cannot be: why, for people.
    Broken(String),
    /// The request was executed.
    Done,
}

/// Contributions in the order of their places as one sequence of bytes: before each its length (8 bytes, little endian).
pub fn join<'a>(contributions: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut joined = Vec::new();
    for contribution in contributions {
        joined.extend_from_slice(&(contribution.len() as u64).to_le_bytes());
        joined.extend_from_slice(contribution);
    }
    joined
}

/// The reverse of [`join`]; `None` if the bytes are not what it makes.
pub fn split(mut joined: &[u8]) -> Option<Vec<&[u8]>> {
    let mut contributions = Vec::new();
    while !joined.is_empty() {
        let (length, rest) = joined.split_first_chunk()?;
        let (contribution, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        contributions.push(contribution);
        joined = rest;
    }
    Some(contributions)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn contributions_survive_the_way(parts in proptest::collection::vec(proptest::collection::vec(0u8.., 0..20), 0..6)) {
            let joined = join(parts.iter().map(Vec::as_slice));
            proptest::prop_assert_eq!(split(&joined), Some(parts.iter().map(Vec::as_slice).collect()));
            if !joined.is_empty() {
                proptest::prop_assert_ne!(split(&joined[..joined.len() - 1]), split(&joined));
            }
        }
    }

    #[test]
    fn rubbish_is_refused() {
        assert_eq!(split(&[255; 9]), None);
        assert_eq!(split(&[1, 0, 0]), None);
    }
}
