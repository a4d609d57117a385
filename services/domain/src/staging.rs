//! Staging of files before jobs start and after they end, and persistent buffers.

mod apply;
pub(crate) mod decide;
mod queries;
pub(crate) mod state;
pub(crate) mod validate;

pub use state::{Buffer, JobStaging, Stage};
