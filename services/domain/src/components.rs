//! Components of a job that are held, released and ended while the others continue.

mod apply;
pub(crate) mod decide;
pub(crate) mod invariants;
mod parts;
mod state;

pub use state::{ComponentOver, SingleEnd};
