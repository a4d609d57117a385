//! Advance reservations, and closures of nodes.

mod apply;
pub(crate) mod decide;
pub(crate) mod queries;
mod state;
pub(crate) mod validate;

pub use state::Reservation;
pub(crate) use state::taken;
