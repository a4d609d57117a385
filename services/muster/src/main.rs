//! muster: all that people and scripts call, as one small program that is linked statically. What needs the services is done
//! by `muster-services`, which it becomes.

use muster_cli::process::{die_quietly_when_nobody_reads, finish};
use std::process::ExitCode;

fn main() -> ExitCode {
    die_quietly_when_nobody_reads();
    if let Some(status) = muster_slurm_commands::link() {
        return status.into();
    }
    muster_commands::answer_if_asked();
    finish(muster_commands::run(muster_commands::parse()))
}
