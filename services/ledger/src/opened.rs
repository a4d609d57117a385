//! An open log, and the state at its end.

use crate::{log::Head, signing::Signer, storage::Storage, tokens::JobTokens};
use muster_domain::State;
use std::sync::Arc;

/// An open log, and the state at its end.
pub(crate) struct Opened {
    pub(crate) storage: Arc<Storage>,
    pub(crate) signer: Arc<Signer>,
    pub(crate) tokens: Arc<JobTokens>,
    pub(crate) state: State,
    pub(crate) head: Head,
}
