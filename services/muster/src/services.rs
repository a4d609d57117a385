//! muster-services: the services of muster, and the commands that need parts of them. People call `muster`, which
//! becomes this program.

mod commands;
mod config;
mod descriptions;
mod dialects;
mod elsewhere;
mod picture;
mod pmix;
mod records;
mod roles;

use dialects::DIALECTS;
use mimalloc::MiMalloc;
use muster_cli::{connection, exit, process, show, table, terminal, values};
use muster_commands::{cli, policies, programs, whole_file};
use std::process::ExitCode;

/// Folding the log is mostly memory allocation.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    muster_executor::serve_shims_if_asked(DIALECTS);
    muster_filter_runner::supervise_filters_if_asked();
    muster_notifier::supervise_commands_if_asked();
    if let Some(status) = muster_archive::unpack_if_asked() {
        return status;
    }
    if std::env::args_os().nth(1).is_some_and(|first| first == muster_executor::PMIX_SERVER) {
        return pmix::serve();
    }
    process::finish(programs::check_caller().and_then(|()| commands::run(&muster_commands::parse())))
}
