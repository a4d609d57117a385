//! muster: the small, statically linked program that people and scripts call. For everything that needs the services it
//! becomes `muster-services`. Executors start their shims from this one: a shim and each of its tasks is a fork, and a
//! fork takes longer the more memory there is to copy.

mod agent;
mod dialects;

use muster_cli::process::{die_quietly_when_nobody_reads, finish};
use muster_commands::cli::{AgentOptions, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    muster_executor::serve_shims_if_asked(dialects::DIALECTS);
    die_quietly_when_nobody_reads();
    let linked = muster_slurm_commands::link().or_else(muster_pbs_commands::link).or_else(muster_oar_commands::link);
    if let Some(status) = linked {
        return status.into();
    }
    muster_commands::answer_if_asked();
    if let Some(status) = muster_archive::unpack_if_asked() {
        return status;
    }
    let cli = muster_commands::parse();
    if let Command::Agent(options @ AgentOptions { command: None, .. }) = &cli.command {
        return finish(agent::run(&cli.connection, options));
    }
    finish(muster_commands::run(cli))
}
