//! muster: the one binary of all roles and commands.

mod cli;
mod commands;
mod config;
mod connection;
mod exit;
mod job_options;
mod roles;
mod script;
mod show;
mod table;
mod terminal;
#[cfg(test)]
mod testing;
mod values;

use clap::{CommandFactory as _, FromArgMatches as _, parser::ValueSource};
use cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    muster_executor::serve_shims_if_asked();
    let cli = parse();
    if !matches!(cli.command, Command::Up(_) | Command::Serve(_)) {
        die_quietly_when_nobody_reads();
    }
    match commands::run(cli) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => failure.report(),
    }
}

fn parse() -> Cli {
    let matches = Cli::command().get_matches();
    let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // What was typed beats the environment, also where it is about another option.
    let typed = |option| matches.value_source(option) == Some(ValueSource::CommandLine);
    if typed("data") && !typed("server") {
        cli.connection.server = None;
    }
    cli
}

/// `muster jobs | head` ends like any other program when `head` has seen enough.
fn die_quietly_when_nobody_reads() {
    // SAFETY: no other thread exists yet, and the default action of a signal needs no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}
