//! Runs: attempts to execute jobs, from the allocation of resources until these are free.

mod apply;
mod by_node;
pub(crate) mod decide;
pub(crate) mod invariants;
pub(crate) mod orders;
mod queries;
pub(crate) mod reports;
pub(crate) mod shrink;
mod state;
pub(crate) mod stopping;
pub(crate) mod walltime;

pub use by_node::{ByNode, OnNode};
pub use decide::runs_after_restore;
pub use state::{Part, PartState, Run, Suspension};
