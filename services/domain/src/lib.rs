//! The rules of muster: [`decide()`] turns a command into events, [`State::apply`] turns an event into a change of
//! state.
//!
//! All of it is pure: no clock, no randomness, no input or output, no walk over anything without an order. The same
//! log gives the same state on every machine.

mod apply;
pub mod calls;
mod decide;
pub mod filters;
mod fits;
mod gates;
pub mod invariants;
pub mod notify;
pub mod orders;
pub mod requests;
mod snapshot;
pub mod state;
mod tasking;
pub mod validate;
mod waiting;

pub use decide::{Decision, decide, decide_owned};
pub use state::State;
pub use waiting::{OrderHead, WaitReasons};
