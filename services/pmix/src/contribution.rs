//! What a node contributes to a fence.

use crate::layout::Layout;
use muster_schemas::{
    codec::{self, CodecError},
    content::ContentBytes,
    fence::MAX_CONTRIBUTION_BYTES,
};
use serde::{Deserialize, Serialize};

/// What a node contributes to a fence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contribution {
    /// What the library gives to the other servers.
    pub collected: ContentBytes,
    /// What tasks have put and this fence does not collect: by rank, as the library answers for that task.
    pub direct: Vec<(u32, ContentBytes)>,
}

/// Why a fence cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFence {
    /// The tasks of the node have put too much.
    #[error("the tasks of this node contribute {0} bytes to a fence, more than {MAX_CONTRIBUTION_BYTES}")]
    TooLarge(usize),
    /// Not one for each node.
    #[error("a fence of {nodes} nodes has {contributions} contributions")]
    Count {
        /// The nodes.
        nodes: usize,
        /// What came.
        contributions: usize,
    },
    /// A node sent something else.
    #[error("what node {node} contributes to a fence cannot be understood: {why}")]
    Malformed {
        /// Its number.
        node: usize,
        /// The reason.
        why: String,
    },
    /// A node speaks for a task of another one.
    #[error("node {node} contributes to a fence for task {rank}, which is not there")]
    Stranger {
        /// Its number.
        node: usize,
        /// The rank.
        rank: u32,
    },
}

impl Contribution {
    /// As it travels.
    ///
    /// # Errors
    /// It is too large.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BadFence> {
        let put: usize = self.direct.iter().map(|(_, bytes)| bytes.0.len()).sum();
        let too_large = |_: CodecError| BadFence::TooLarge(self.collected.0.len() + put);
        let bytes = codec::encode(self).map_err(too_large)?;
        if bytes.len() > MAX_CONTRIBUTION_BYTES { Err(BadFence::TooLarge(bytes.len())) } else { Ok(bytes) }
    }
}

/// All contributions to a fence as one.
///
/// # Errors
/// They are not those of the nodes of this program.
pub fn joined(layout: &Layout, contributions: &[ContentBytes]) -> Result<Contribution, BadFence> {
    if contributions.len() != layout.nodes().len() {
        return Err(BadFence::Count { nodes: layout.nodes().len(), contributions: contributions.len() });
    }
    let mut all = Contribution::default();
    for (node, bytes) in contributions.iter().enumerate() {
        let malformed = |error: CodecError| BadFence::Malformed { node, why: error.to_string() };
        let contribution: Contribution = codec::decode(&bytes.0).map_err(malformed)?;
        let is_there = |rank: u32| layout.tasks().get(rank as usize).is_some_and(|task| task.node as usize == node);
        if let Some((rank, _)) = contribution.direct.iter().find(|(rank, _)| !is_there(*rank)) {
            return Err(BadFence::Stranger { node, rank: *rank });
        }
        // Servers of the library exchange byte objects one after the other.
        all.collected.0.extend(contribution.collected.0);
        all.direct.extend(contribution.direct);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::tests::program;

    fn layout() -> Layout {
        Layout::new(program()).unwrap()
    }

    fn of(collected: &[u8], direct: &[(u32, &[u8])]) -> ContentBytes {
        let direct = direct.iter().map(|(rank, bytes)| (*rank, ContentBytes(bytes.to_vec()))).collect();
        ContentBytes(Contribution { collected: ContentBytes(collected.to_vec()), direct }.to_bytes().unwrap())
    }

    /// SL-W-05
    #[test]
    fn contributions_are_joined_in_the_order_of_the_nodes() {
        let contributions = [of(b"ab", &[(2, b"x")]), of(b"", &[]), of(b"c", &[(4, b"y")])];
        let all = joined(&layout(), &contributions).unwrap();
        assert_eq!(all.collected.0, b"abc");
        assert_eq!(all.direct, [(2, ContentBytes(b"x".to_vec())), (4, ContentBytes(b"y".to_vec()))]);
    }

    #[test]
    fn what_is_no_contribution_is_refused() {
        let nothing = of(b"", &[]);
        let bad = |contributions: &[ContentBytes]| joined(&layout(), contributions).unwrap_err();
        assert!(matches!(bad(std::slice::from_ref(&nothing)), BadFence::Count { nodes: 3, contributions: 1 }));
        let rubbish = [nothing.clone(), ContentBytes(b"rubbish".to_vec()), nothing.clone()];
        assert!(matches!(bad(&rubbish), BadFence::Malformed { node: 1, .. }));
        let stranger = [nothing.clone(), of(b"", &[(0, b"x")]), nothing];
        assert_eq!(bad(&stranger), BadFence::Stranger { node: 1, rank: 0 });
    }

    #[test]
    fn a_contribution_has_a_limit() {
        let large = Contribution { collected: ContentBytes(vec![0; MAX_CONTRIBUTION_BYTES]), direct: Vec::new() };
        assert!(matches!(large.to_bytes(), Err(BadFence::TooLarge(_))));
    }
}
