//! How a command ends: its exit status and what it says on standard error.

/// Prints a line on standard error. If that fails (the disk is full, the pipe is closed) the command continues its
/// work; `eprintln!` would end it.
#[macro_export]
macro_rules! stderr_line {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

use muster_schemas::command::RefusalCode;
use std::fmt;

/// The stable exit statuses of every muster command. Scripts rely on them; `docs/reference/exit-status.md` is the
/// contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It was refused or failed; the reason is on standard error.
    Failed = 1,
    /// The command line, a script or a configuration file is wrong; nothing was requested.
    Usage = 2,
    /// The caller may not do this.
    NoPermission = 3,
    /// What was named does not exist.
    NotFound = 4,
    /// The service could not be reached; nothing changed.
    Unreachable = 5,
}

impl From<RefusalCode> for Status {
    fn from(code: RefusalCode) -> Self {
        match code {
            RefusalCode::PermissionDenied => Self::NoPermission,
            RefusalCode::NotFound => Self::NotFound,
            RefusalCode::Unavailable => Self::Unreachable,
            RefusalCode::Invalid
            | RefusalCode::Conflict
            | RefusalCode::LimitReached
            | RefusalCode::StorageFailed
            | RefusalCode::Busy => Self::Failed,
        }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    /// The exit status.
    pub status: Status,
    /// For people; printed after `muster: ` unless it begins with a position in a file.
    pub message: String,
    /// Whether the message begins with `FILE:LINE:COLUMN`, which editors understand only at the start of a line.
    positioned: bool,
}

impl Failure {
    /// A failure with this status.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), positioned: false }
    }

    /// The request was refused or failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Status::Failed, message)
    }

    /// The command line is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Status::Usage, message)
    }

    /// A file is wrong at a position.
    pub fn in_file(position: impl fmt::Display, message: impl fmt::Display) -> Self {
        Self::at(Status::Usage, position, message)
    }

    /// A file was refused at a position, with this status.
    pub fn at(status: Status, position: impl fmt::Display, message: impl fmt::Display) -> Self {
        Self { status, message: format!("{position}: {message}"), positioned: true }
    }

    /// Prints the reason and returns the status to exit with.
    pub fn report(&self) -> u8 {
        if self.positioned {
            stderr_line!("{}", self.message);
        } else {
            stderr_line!("muster: {}", self.message);
        }
        self.status as u8
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::failed(format!("{error:#}"))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::failed(error.to_string())
    }
}

/// The result of a command: the status of the process it stands for (0 for most), or why it failed.
pub type CommandResult = Result<u8, Failure>;
