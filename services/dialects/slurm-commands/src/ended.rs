//! What a command came to, and what it prints.

use muster_slurm::{options::version, queries};
use std::io::Write as _;

/// What a command came to: its exit status, or what it says when it does nothing.
pub(crate) type Ended = Result<u8, queries::Failure>;

/// What is left to do of a request: help, usage and version are printed here.
pub(crate) fn wanted<T>(tool: &str, request: queries::Request<T>) -> Option<T> {
    let text = match request {
        queries::Request::Run(command) => return Some(command),
        queries::Request::Help => queries::help(tool).unwrap_or_default(),
        queries::Request::Usage => queries::usage(tool).unwrap_or_default(),
        queries::Request::Version => version(env!("CARGO_PKG_VERSION")),
    };
    print(&text);
    None
}

/// Prints all at once; who does not read it need not.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
