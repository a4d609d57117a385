//! Dependencies of jobs on others.

mod apply;
pub(crate) mod decide;
pub(crate) mod facts;
pub(crate) mod invariants;
mod state;
pub(crate) mod validate;

pub use state::{Awaited, Condition, ConditionStatus};
