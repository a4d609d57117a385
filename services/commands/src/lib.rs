//! The commands of muster: the grammar of all of them, and those that ask a gateway and print its answer. For the
//! others [`run`] becomes the program of the services.

pub mod audit;
mod cells;
pub mod cli;
pub mod cluster_toml;
mod commands;
mod complete;
pub mod energy_toml;
mod examples;
pub mod filters;
mod grammar;
mod job_options;
mod job_table;
mod line;
mod output_files;
pub mod policies;
pub mod programs;
mod script;
pub mod whole_file;
mod wrong_line;

pub use commands::run;
pub use complete::answer_if_asked;
pub use line::parse;

use muster_cli::{exit, show, story, table, terminal, values};
