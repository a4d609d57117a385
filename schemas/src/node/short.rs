//! Completes orders that have parts named by hash.

use super::{LaunchOrder, NodeOrder, ShortOrder};
use crate::{
    codec::{self, CodecError},
    content::ContentHash,
    job::Program,
};

/// Why an order cannot be completed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// A content cannot be decoded.
    #[error(transparent)]
    Content(#[from] CodecError),
    /// A content is missing or does not fit this order.
    #[error("the content {0:?} is missing or of no use to the order")]
    Unfit(ContentHash),
}

impl ShortOrder {
    /// The complete order, with the missing contents filled in.
    ///
    /// # Errors
    /// If a content is not available or has another kind, or if the order does not launch anything that it fits.
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
            Self::Launch { order, .. } | Self::Hold(order) => Some(order),
            _ => None,
        }
    }

    /// The same, mutable.
    pub fn launch_mut(&mut self) -> Option<&mut LaunchOrder> {
        match self {
            Self::Launch { order, .. } | Self::Hold(order) => Some(order),
            _ => None,
        }
    }
}
