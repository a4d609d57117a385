//! Nodes, queues and licences, their free resources, and the settings of the cluster.

mod apply;
pub(crate) mod decide;
pub(crate) mod invariants;
mod loads;
pub(crate) mod measured;
pub(crate) mod names;
mod queries;
mod shares;
pub(crate) mod state;
pub(crate) mod validate;

pub(crate) use shares::Spare;
pub use shares::Violation;
pub use state::{Licence, Node, Queue, TakenOut};
