//! What command lines ask for, and what they are read with.

use super::{failure::Failure, getopt};

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Request<T> {
    /// The command's work.
    Run(T),
    /// `--help`.
    Help,
    /// `--usage`.
    Usage,
    /// `-V`.
    Version,
}

/// What is printed instead of the command's work, if its options say so.
pub(super) fn printed_only<T>(line: &getopt::Line) -> Option<Request<T>> {
    let requests = [("help", Request::Help), ("usage", Request::Usage), ("version", Request::Version)];
    requests.into_iter().find_map(|(key, request)| line.has(key).then_some(request))
}

/// How many seconds `--iterate` lets pass before the list is shown again; `None` if it is shown once.
///
/// # Errors
/// It is no number above 0.
pub(super) fn iterate(command: &str, line: &getopt::Line) -> Result<Option<u64>, Failure> {
    let Some(text) = line.value("iterate") else { return Ok(None) };
    match text.parse() {
        Ok(seconds) if seconds > 0 => Ok(Some(seconds)),
        _ => Err(Failure::error(command, format_args!("--iterate={text}"))),
    }
}

/// What command lines are read with: the environment, and who reads them when.
pub struct Surroundings<'a> {
    /// A variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Login name of the caller.
    pub user: &'a str,
    /// Whether there is a user of that name or number.
    pub knows_user: &'a dyn Fn(&str) -> bool,
    /// Whether the caller is root.
    pub is_root: bool,
    /// The present moment in the caller's zone.
    pub now: jiff::Zoned,
}
