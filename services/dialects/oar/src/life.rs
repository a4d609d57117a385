//! The life of a job: its states, its clock, its end, and what takes its place.

pub mod clock;
pub mod connect;
pub mod deletion;
pub mod failure;
pub mod launch;
pub mod neutral;
pub mod report;
pub mod resubmission;
pub mod state;
pub mod suspension;
pub mod target;
