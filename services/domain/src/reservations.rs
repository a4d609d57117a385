//! Advance reservations, and closures of nodes.

mod apply;
pub(crate) mod decide;
pub(crate) mod queries;
mod state;
pub(crate) mod validate;

pub(crate) use state::taken;
pub use state::{Reservation, clash};
