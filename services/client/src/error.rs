use muster_schemas::views::{ErrorBody, ErrorCode};
use std::io;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// There is no connection to the gateway, or it ended before a query was answered. Nothing changed.
    #[error("{endpoint} cannot be reached: {reason}")]
    Unreachable {
        /// Where the gateway should be.
        endpoint: String,
        /// The system's error message.
        reason: String,
    },
    /// The request was sent and its answer lost. It may have been executed; a command can be repeated with the same id.
    #[error("the answer was lost, it is not known whether the request was done: {0}")]
    AnswerLost(String),
    /// The gateway refused. Nothing changed.
    #[error("{}", .0.message)]
    Refused(ErrorBody),
    /// The answer is not what a gateway sends.
    #[error("{0}")]
    Protocol(String),
}

impl ClientError {
    /// The code of a refusal.
    pub const fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused(body) => Some(body.code),
            _ => None,
        }
    }

    /// Whether the gateway refused.
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// Whether the gateway or the ledger is away, so that another try may succeed.
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::AnswerLost(_)) || self.is_unavailable()
    }

    /// Whether the same request may succeed later.
    pub const fn is_unavailable(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::Unavailable))
    }
}

/// The system's message, reworded where the usual one misleads.
pub(crate) fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such socket or host; is muster running?".to_owned(),
        io::ErrorKind::ConnectionRefused => "nobody listens there; is muster running?".to_owned(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".to_owned(),
        _ => error.to_string(),
    }
}
