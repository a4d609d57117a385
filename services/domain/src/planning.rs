//! Plans, and the policy and settings that planners follow.

mod apply;
pub(crate) mod decide;
pub(crate) mod invariants;
mod queries;
pub(crate) mod state;
pub(crate) mod validate;

pub use state::BackfillPasses;
