//! The Slurm dialect: command lines, batch scripts and the environment in; job descriptions, step layouts, tables and
//! messages out.
//!
//! Nothing here does I/O or looks at a clock. Requirement ids such as SL-S-01 are those of the dialect's specification.

/// The name of this dialect in the records of jobs and steps.
pub const NAME: &str = "slurm";

pub mod accounts;
pub mod attributes;
pub mod burst_buffer;
pub mod crontab;
mod dialect;
pub mod duration;
pub mod environment;
pub mod features;
pub mod filtered;
pub mod getopt;
pub mod hostlist;
pub mod job_id;
pub mod mail;
pub mod messages;
pub mod moment;
pub mod options;
pub mod output;
pub mod power_saving;
pub mod queries;
pub mod request;
pub mod script;
pub mod select;
pub mod show;
pub mod site_variables;
pub mod size;
pub mod steps;
pub mod words;

pub use dialect::Slurm;
