//! Dependencies of jobs on others.

mod apply;
mod awaits;
pub(crate) mod decide;
pub(crate) mod facts;
pub(crate) mod invariants;
mod state;
pub(crate) mod validate;

pub use awaits::Awaited;
pub use state::{Condition, ConditionStatus};
