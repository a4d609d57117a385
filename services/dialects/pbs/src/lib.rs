//! The PBS dialect, for OpenPBS, PBS Pro and TORQUE: command lines, job scripts and the environment in; job descriptions,
//! tables and messages out.
//!
//! Nothing here does I/O or looks at a clock. Requirement ids such as PBS-Q-10 are those of the dialect's specification.

/// The name of this dialect in the records of jobs and steps.
pub const NAME: &str = "pbs";

pub mod array;
pub mod attributes;
pub mod chunks;
pub mod depend;
mod dialect;
pub mod environment;
pub mod flavour;
pub mod getopt;
pub mod job_id;
pub mod notes;
pub mod qmgr;
pub mod queries;
pub mod refusal;
pub mod resources;
pub mod script;
pub mod show;
pub mod staging;
pub mod submit;
pub mod text;
pub mod value;
pub mod variables;

pub use dialect::Pbs;
