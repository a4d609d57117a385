//! The start and end of a command's process.

use crate::{exit::CommandResult, show::with_local_times};
use jiff::tz::TimeZone;
use std::process::ExitCode;

/// Lets `muster jobs | head` end like any other program once `head` has seen enough. Rust's runtime ignores the signal.
pub fn die_quietly_when_nobody_reads() {
    // SAFETY: the default action of a signal needs no handler, and nothing else sets this one.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Reports a failure, if there is one, and returns the status to exit with.
pub fn finish(result: CommandResult) -> ExitCode {
    let status = result.unwrap_or_else(|mut failure| {
        failure.message = with_local_times(&failure.message, &TimeZone::system());
        failure.report()
    });
    status.into()
}
