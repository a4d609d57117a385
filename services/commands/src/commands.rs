//! The commands, one file for each group.

mod agent;
mod config;
mod events;
mod explain;
mod filter;
mod install;
mod job;
mod ledgers;
mod lists;
mod logs;
mod manual;
mod mpi;
mod overview;
mod plan;
mod quota;
mod reservations;
mod rsh;
mod shell;
mod step;
mod submit;
mod usage;

use crate::{
    audit,
    cli::{AuditCommand, Cli, Command, JobCommand},
    complete, programs,
};
use muster_cli::exit::CommandResult;
use muster_hpcpack_commands as hpcpack;
use muster_oar_commands as oar;
use muster_pbs_commands as pbs;
use muster_slurm_commands as slurm;

/// Runs the command, or becomes the program that does.
///
/// # Errors
/// As the command.
pub fn run(cli: Cli) -> CommandResult {
    let connection = &cli.connection;
    match cli.command {
        Command::Submit(options) => submit::submit(connection, *options),
        Command::Run(options) => submit::run_step(connection, options),
        Command::Step(command) => step::run(connection, command),
        Command::Rsh(options) => rsh::rsh(connection, options),
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
        Command::Filter(command) => filter::run(connection, &command),
        Command::Explain(options) => explain::explain(connection, &options),
        Command::Plan(options) => plan::plan(connection, &options),
        Command::Events(options) => events::events(connection, &options),
        Command::Usage(options) => usage::usage(connection, &options),
        Command::Config(command) => config::run(connection, &command),
        Command::Ledgers(options) => ledgers::run(connection, &options),
        Command::Quota(command) => quota::run(connection, &command),
        Command::Jobtemplate { words } => hpcpack::template(connection, &words),
        Command::Cluscfg { words } => hpcpack::cluscfg(connection, &words),
        Command::Basl { words } => Ok(pbs::basl(&words)),
        Command::Oar { words } => Ok(oar::words(connection, &words)),
        Command::Pbs { words } => Ok(pbs::words(connection, &words)),
        Command::Slurm { words } => Ok(slurm::words(connection, words)),
        Command::InstallCommands { dir } => install::install(&dir),
        Command::Completions { shell } => complete::registration(shell),
        Command::Man { dir } => manual::man(&dir),
        Command::Version => manual::version(),
        Command::Audit(AuditCommand::Verify { offline: false, json, .. }) => audit::verify(connection, json),
        Command::Agent(options) => agent::token(&options),
        Command::Up(_)
        | Command::Serve(_)
        | Command::Audit(_)
        | Command::Backup(_)
        | Command::Restore(_)
        | Command::Replay(_)
        | Command::Simulate(_)
        | Command::Whatif(_)
        | Command::Doctor(_) => programs::become_services(),
    }
}
