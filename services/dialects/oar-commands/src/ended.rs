//! The result of a command, and its output.

use muster_client::ClientError;
use muster_oar::refusal::Refusal;
use std::{fmt, io::Write as _};

/// Prints all at once, and ignores a closed output.
pub(super) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// The result of a command: its exit status, or why it does nothing.
pub(super) type Ended = Result<u8, Failure>;

/// Why a command does nothing.
#[derive(Debug)]
pub(super) struct Failure {
    /// The text, without the command's name.
    pub text: String,
    /// The exit status.
    pub status: u8,
}

impl Failure {
    pub fn new(text: impl fmt::Display) -> Self {
        Self { text: text.to_string(), status: 1 }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self { text: refusal.to_string(), status: refusal.code.exit_status() }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::new(error)
    }
}
