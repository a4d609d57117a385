//! The life of a job: its states, what it finds at its start, and what can be done to it.

pub mod connect;
pub mod deletion;
pub mod launch;
pub mod neutral;
pub mod state;
pub mod target;
