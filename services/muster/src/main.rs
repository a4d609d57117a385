//! muster: the one binary of all roles and commands.

mod cli;
mod config;
mod exit;
mod job_options;
mod script;
mod table;
mod terminal;
#[cfg(test)]
mod testing;
mod values;

fn main() {}
