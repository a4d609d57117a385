//! The message of a command that does nothing.

use std::fmt;

/// The error message of a command that does nothing, and its exit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The lines.
    pub lines: Vec<String>,
    /// The exit status.
    pub code: u8,
}

impl Failure {
    /// `<command>: error: <text>`, exit status 1.
    pub fn error(command: &str, text: impl fmt::Display) -> Self {
        Self { lines: vec![format!("{command}: error: {text}")], code: 1 }
    }

    /// `<command>: fatal: <text>`, exit status 1.
    pub fn fatal(command: &str, text: impl fmt::Display) -> Self {
        Self { lines: vec![format!("{command}: fatal: {text}")], code: 1 }
    }

    /// The text as it is, exit status 1.
    pub fn plain(text: impl fmt::Display) -> Self {
        Self { lines: vec![text.to_string()], code: 1 }
    }
}
