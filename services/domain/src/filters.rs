//! Filters, job templates, and timed holds.

mod apply;
pub mod calls;
pub(crate) mod chain;
pub(crate) mod decide;
pub(crate) mod invariants;
mod queries;
pub(crate) mod state;
pub(crate) mod validate;
pub mod verdict;

pub use state::{Chain, Entry, JobFilters, Kept, OutstandingCall, Passed, Refusal, Told};
