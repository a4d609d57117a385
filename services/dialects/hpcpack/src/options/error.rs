//! What is wrong with options.

use crate::codes::Refusal;

/// Why a command line is not carried out. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// Wrong usage: an unknown option, options that clash, a value that is missing or too many.
    #[error("{0}")]
    Usage(String),
    /// A value that is refused.
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
