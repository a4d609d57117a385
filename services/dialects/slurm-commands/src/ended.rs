//! The result of a command, and its output.

use super::site::Site;
use muster_slurm::queries;
use std::io::Write as _;

/// The result of a command: its exit status, or its message if it does nothing.
pub(crate) type Ended = Result<u8, queries::Failure>;

/// The command to run; help, usage and version are printed here.
pub(crate) fn wanted<T>(site: &Site, request: queries::Request<T>) -> Option<T> {
    let text = match request {
        queries::Request::Run(command) => return Some(command),
        queries::Request::Help => queries::help(site.tool).unwrap_or_default(),
        queries::Request::Usage => queries::usage(site.tool).unwrap_or_default(),
        queries::Request::Version => site.version_line(),
    };
    print(&text);
    None
}

/// Prints all at once, and ignores a closed output.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
