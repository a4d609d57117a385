//! The requests of command lines, and the context for reading them.

use super::{failure::Failure, getopt};
use crate::show::data::DataFormat;

/// The request of a command line.
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

/// The text to print instead of the command's work, if an option asks for one.
pub(super) fn printed_only<T>(line: &getopt::Line) -> Option<Request<T>> {
    let requests = [("help", Request::Help), ("usage", Request::Usage), ("version", Request::Version)];
    requests.into_iter().find_map(|(key, request)| line.has(key).then_some(request))
}

/// The format of data for programs, if one is asked for; the last option counts.
pub(super) fn data_format(line: &getopt::Line) -> Option<DataFormat> {
    let formats = [("json", DataFormat::Json), ("yaml", DataFormat::Yaml)];
    let of = |key: &str| formats.into_iter().find(|(known, _)| *known == key).map(|(_, format)| format);
    line.options.iter().rev().find_map(|(key, _)| of(key))
}

/// The seconds of `--iterate` before the list is shown again; `None` if it is shown once.
///
/// # Errors
/// It is not a number above 0.
pub(super) fn iterate(command: &str, line: &getopt::Line) -> Result<Option<u64>, Failure> {
    let Some(text) = line.value("iterate") else { return Ok(None) };
    match text.parse() {
        Ok(seconds) if seconds > 0 => Ok(Some(seconds)),
        _ => Err(Failure::error(command, format_args!("--iterate={text}"))),
    }
}

/// The context for reading command lines: the environment, the user and the time.
pub struct Surroundings<'a> {
    /// A variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Login name of the caller.
    pub user: &'a str,
    /// Whether there is a user with this name or number.
    pub knows_user: &'a dyn Fn(&str) -> bool,
    /// Whether the caller is root.
    pub is_root: bool,
    /// The current time in the caller's zone.
    pub now: jiff::Zoned,
}
