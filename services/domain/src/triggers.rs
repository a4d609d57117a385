//! Triggers: programs that run when something happens to a job or to nodes.
//!
//! A record marks what it hits in the triggers, with the time; the ledger's next tick fires those that are due. So nodes
//! that go down together are told together.

mod apply;
pub(crate) mod decide;
pub(crate) mod notices;
mod queries;
mod state;

pub use state::{Trigger, Triggers};
