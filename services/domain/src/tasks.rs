//! Jobs with lists of tasks: their tasks, and runs that grow and shrink.

pub(crate) mod apply;
pub(crate) mod decide;
pub(crate) mod invariants;
pub(crate) mod orders;
pub(crate) mod outlook;
mod queries;
pub(crate) mod room;
pub(crate) mod state;
mod task;
pub(crate) mod validate;

pub use state::{Elastic, Ending, RunningTask, TaskBook};
pub use task::Task;
