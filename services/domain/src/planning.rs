//! Plans, and the policy and settings that planners follow.

mod apply;
mod charges;
mod comments;
pub(crate) mod decide;
pub(crate) mod invariants;
mod job_comments;
pub(crate) mod notices;
mod queries;
mod route_charges;
mod routing;
mod share_use;
pub(crate) mod state;
pub(crate) mod validate;
mod window_charges;
mod window_use;

pub(crate) use routing::Routing;
pub use share_use::ShareUse;
pub use state::BackfillPasses;
pub(crate) use window_use::WindowUse;
