//! Nodes that sleep while nothing runs on them, and are woken for jobs.
//!
//! The ledger's tick decides all of it: which nodes are ordered to sleep and to wake, and what becomes of those that do not
//! obey. An order is a record, and a notifier runs the site's program for it. A run can be placed on nodes that sleep; its
//! launch is ordered once all of them report.

mod apply;
pub(crate) mod decide;
pub(crate) mod notices;
mod outlook;
mod queries;
mod state;
pub(crate) mod validate;

pub use state::{NodePower, Power};
