//! The rules of muster: [`decide()`] turns a command into events, [`State::apply`] turns an event into a change of
//! state.
//!
//! All of it is pure: no clock, no randomness, no input or output, no iteration over anything unordered. The same log
//! gives the same state on every machine.

pub mod accounts;
mod apply;
pub mod components;
pub mod copies;
pub mod crontabs;
mod decide;
pub mod dependencies;
pub mod filters;
pub mod fixed;
mod index;
pub mod invariants;
pub mod jobs;
mod lending;
mod nesting;
pub mod nodes;
pub mod notify;
pub mod orders;
pub mod planning;
pub mod power;
mod preemption;
pub mod quotas;
pub mod requests;
pub mod reservations;
pub mod runs;
pub mod sharing;
mod snapshot;
pub mod staging;
pub mod state;
pub mod steps;
pub mod tasks;
pub mod triggers;
mod unapplied;
mod validate;
mod walltimes;

pub use decide::{Decision, decide, decide_owned};
pub use jobs::{OrderHead, WaitReasons};
pub use state::{Reign, State};
