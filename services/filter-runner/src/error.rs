//! Why no filters can be run on this machine.

use std::path::PathBuf;

/// Why a runner cannot start.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// An account of the configuration cannot be used.
    #[error("account `{name}`: {why}; no filter can be run")]
    Account {
        /// Its name.
        name: String,
        /// Why it cannot be used.
        why: String,
    },
    /// The folder for calls cannot be made.
    #[error("the scratch folder {folder} cannot be made: {why}; no filter can be run")]
    Scratch {
        /// Its path.
        folder: PathBuf,
        /// Why.
        why: std::io::Error,
    },
}
