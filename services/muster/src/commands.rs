//! The commands, one file for each group.

mod audit;
mod config;
mod doctor;
mod events;
mod explain;
mod filter;
mod install;
mod job;
mod lists;
mod logs;
mod manual;
mod overview;
mod plan;
mod replay;
mod reservations;
mod shell;
mod simulate;
mod step;
mod submit;
mod usage;
mod whatif;

use crate::{
    cli::{Cli, Command, JobCommand},
    complete, roles,
};
use muster_cli::exit::CommandResult;
use muster_hpcpack_commands as hpcpack;
use muster_slurm_commands as slurm;

/// Does what the command line asks.
pub fn run(cli: Cli) -> CommandResult {
    let connection = &cli.connection;
    match cli.command {
        Command::Up(options) => roles::up(connection, &options),
        Command::Serve(options) => roles::serve(connection, &options),
        Command::Submit(options) => submit::submit(connection, *options),
        Command::Run(options) => submit::run_step(connection, options),
        Command::Step(command) => step::run(connection, command),
        Command::Status(options) => overview::status(connection, options),
        Command::Top(options) => overview::top(connection, &options),
        Command::Jobs(options) => lists::jobs(connection, *options),
        Command::Cancel(jobs) => job::run(connection, JobCommand::Cancel(jobs)),
        Command::Logs(options) => logs::logs(connection, &options),
        Command::Shell(options) => shell::shell(connection, *options),
        Command::Job(command) => job::run(connection, command),
        Command::Nodes(options) => lists::nodes(connection, &options),
        Command::Node(command) => lists::node(connection, command),
        Command::Reserve(options) => reservations::reserve(connection, options),
        Command::Unreserve { name } => reservations::unreserve(connection, &name),
        Command::Reservations(options) => reservations::list(connection, &options),
        Command::Queues(options) => lists::queues(connection, &options),
        Command::Filter(command) => filter::run(connection, command),
        Command::Explain(options) => explain::explain(connection, &options),
        Command::Plan(options) => plan::plan(connection, &options),
        Command::Events(options) => events::events(connection, &options),
        Command::Usage(options) => usage::usage(connection, &options),
        Command::Audit(command) => audit::run(connection, &command),
        Command::Replay(options) => replay::replay(connection, &options),
        Command::Simulate(options) => simulate::simulate(&options),
        Command::Whatif(options) => whatif::whatif(connection, &options),
        Command::Config(command) => config::run(connection, &command),
        Command::Doctor(options) => doctor::doctor(connection, &options),
        Command::Jobtemplate { words } => hpcpack::template(connection, &words),
        Command::Cluscfg { words } => hpcpack::cluscfg(connection, &words),
        Command::Slurm { words } => Ok(slurm::words(connection, words)),
        Command::InstallCommands { dir } => install::install(&dir),
        Command::Completions { shell } => complete::registration(shell),
        Command::Man { dir } => manual::man(&dir),
        Command::Version => manual::version(),
    }
}
