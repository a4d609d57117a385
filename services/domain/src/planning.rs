//! Plans, the policy and the settings that they follow.

mod apply;
pub(crate) mod decide;
pub(crate) mod invariants;
mod queries;
pub(crate) mod state;
pub(crate) mod validate;

pub use state::BackfillPasses;
