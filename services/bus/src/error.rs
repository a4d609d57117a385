use muster_schemas::{codec::CodecError, command::Refusal, ids::Sequence};

/// Why a call of the bus failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BusError {
    /// Nobody serves the subject at this moment. Nothing happened.
    #[error("nobody answers on `{subject}`")]
    NoResponder {
        /// The subject asked.
        subject: String,
    },
    /// No reply arrived in time, or the server dropped the request. The request may have taken effect all the same.
    #[error("no reply on `{subject}` in time")]
    TimedOut {
        /// The subject asked.
        subject: String,
    },
    /// The message is larger than the bus carries. Nothing was sent.
    #[error("a message of {bytes} bytes is larger than the bus carries ({limit} bytes)")]
    TooLarge {
        /// Bytes of the message.
        bytes: usize,
        /// The most that the bus carries.
        limit: usize,
    },
    /// The log stream does not end where this writer expects: its store or an acknowledgement was lost, or another
    /// writer is active. Ask for [`log_tail`](crate::Bus::log_tail) and continue from there.
    #[error("the log stream does not end at record {expected}, where this writer thought it ends")]
    Fenced {
        /// Where this writer expected the stream to end; 0 for an empty one.
        expected: Sequence,
    },
    /// The bus cannot be reached, or it failed; trying again may help.
    #[error("the bus failed: {0}")]
    Unavailable(String),
    /// The bus of this process is closed: it stops.
    #[error("the bus is closed")]
    Closed,
    /// The bus refuses to be used like this; trying again does not help.
    #[error("{0}")]
    Unusable(String),
    /// A message cannot be encoded, or is not what was expected.
    #[error("a message on `{subject}` is not as expected: {source}")]
    Malformed {
        /// Its source or destination.
        subject: String,
        /// A description of the fault.
        source: CodecError,
    },
    /// The ledger refuses to answer a query.
    #[error("the ledger refuses: {0}")]
    Refused(Refusal),
}

impl BusError {
    /// Whether the same call may succeed later although nobody changes anything.
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::NoResponder { .. } | Self::TimedOut { .. } | Self::Unavailable(_) | Self::Fenced { .. })
    }
}
