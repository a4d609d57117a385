//! The life of a job: its states, its clock, its end, and what takes its place.

pub mod clock;
pub mod deletion;
pub mod launch;
pub mod neutral;
pub mod resubmission;
pub mod state;
pub mod suspension;
