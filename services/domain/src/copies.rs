//! Files that nodes copy for jobs: before they start, ahead of that, and after they have ended (PBS-G-01 to PBS-G-05).
//!
//! A node is told what to copy when it begins, and again with each answer to its reports until it has told the result.

pub(crate) mod apply;
pub(crate) mod decide;
pub(crate) mod notices;
pub(crate) mod orders;
mod queries;
mod state;
pub(crate) mod validate;

pub use state::{CopyStage, JobCopies};
