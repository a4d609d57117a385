//! The HPC Pack dialect: job XML, JSON, options and template XML in; typed descriptions, tables and messages out.
//!
//! Nothing here does I/O or looks at a clock. Requirement ids such as HPC-J-06 are those of the dialect's
//! specification.

/// The name of this dialect in the records of jobs.
pub const NAME: &str = "hpcpack";

pub mod changes;
pub mod codes;
pub mod core_settings;
pub mod description;
mod dialect;
pub mod hold;
pub mod jobs;
pub mod options;
pub mod priority;
pub mod result_file;
pub mod run_time;
pub mod settings;
pub mod shown;
pub mod size;
pub mod stored_template;
pub mod sweep;
pub mod tasks;
pub mod template;
mod xml;

pub use dialect::HpcPack;
