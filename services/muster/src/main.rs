//! muster: all that people and scripts call, as one small program that is linked statically. What needs the services is done
//! by `muster-services`, which it becomes. Executors start their shims from this one: a shim and each of its tasks is a fork,
//! and takes as long as there is memory to copy.

mod dialects;

use muster_cli::process::{die_quietly_when_nobody_reads, finish};
use std::process::ExitCode;

fn main() -> ExitCode {
    muster_executor::serve_shims_if_asked(dialects::DIALECTS);
    die_quietly_when_nobody_reads();
    if let Some(status) = muster_slurm_commands::link() {
        return status.into();
    }
    muster_commands::answer_if_asked();
    finish(muster_commands::run(muster_commands::parse()))
}
