//! Steps that clients launch inside runs, and jobs that end with their clients.

mod apply;
pub(crate) mod decide;
pub(crate) mod invariants;
pub(crate) mod orders;
mod queries;
pub(crate) mod state;
pub(crate) mod validate;

pub use state::{AtOnce, KeptJob, PartProgress, Step, StepPart, StepProgress};
