//! Errors in options.

use crate::codes::Refusal;

/// Why a command line is refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// Wrong usage: an unknown option, clashing options, or a missing or superfluous value.
    #[error("{0}")]
    Usage(String),
    /// A refused value.
    #[error("/{option}: {refusal}")]
    Refused {
        /// The option.
        option: String,
        /// Why.
        refusal: Refusal,
    },
}

impl OptionError {
    /// The exit code of the command: 2 for wrong usage, 1 for a refusal (HPC-C-02).
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Refused { .. } => 1,
        }
    }
}
