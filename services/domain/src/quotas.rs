//! Quotas: limits on the cores, jobs and core-time that jobs of a queue, an account, a kind and a user hold at once (OAR-Q-01).
//!
//! A [`Book`] counts the runs and promises that there are, and tells when a job can start within all limits. The planner and the
//! ledger each have one: the planner looks for the first start, the ledger refuses a start that would break a limit.

mod book;
mod line;
mod subject;
mod uses;
pub(crate) mod validate;

pub use book::{Book, Breach, Measure};
pub use subject::{Marks, Part, Subject};
pub use uses::{all_cores, marks};
pub(crate) use uses::{book_of_runs, end_of, parts};
