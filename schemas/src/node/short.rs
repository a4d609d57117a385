//! Orders some of which is named by its hash, made whole.

use super::{LaunchOrder, NodeOrder, ShortOrder};
use crate::{
    codec::{self, CodecError},
    content::ContentHash,
    job::Program,
};

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
            Self::Launch { order, .. } | Self::Hold(order) => Some(order),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn launch_mut(&mut self) -> Option<&mut LaunchOrder> {
        match self {
            Self::Launch { order, .. } | Self::Hold(order) => Some(order),
            _ => None,
        }
    }
}
