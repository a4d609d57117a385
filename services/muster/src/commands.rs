//! The commands that need parts of the services, one file for each.

mod audit;
mod backup;
mod config;
mod doctor;
mod filter;
mod replay;
mod simulate;
mod whatif;

use crate::{
    cli::{Cli, Command, FilterCommand},
    elsewhere::only_muster,
    exit::CommandResult,
    process::die_quietly_when_nobody_reads,
    roles,
};

/// Runs the command.
pub fn run(cli: &Cli) -> CommandResult {
    let connection = &cli.connection;
    match &cli.command {
        Command::Up(options) => return roles::up(connection, options),
        Command::Serve(options) => return roles::serve(connection, options),
        _ => die_quietly_when_nobody_reads(),
    }
    match &cli.command {
        Command::Filter(FilterCommand::Test(options)) => filter::test(connection, options),
        Command::Audit(command) => audit::run(connection, command),
        Command::Backup(options) => backup::backup(connection, options),
        Command::Restore(options) => backup::restore(connection, options),
        Command::Replay(options) => replay::replay(connection, options),
        Command::Simulate(options) => simulate::simulate(options),
        Command::Whatif(options) => whatif::whatif(connection, options),
        Command::Config(command) => config::run(connection, command),
        Command::Doctor(options) => doctor::doctor(connection, options),
        _ => Err(only_muster()),
    }
}
