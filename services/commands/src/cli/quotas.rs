//! The grammar of `muster quota`.

use super::QueryOptions;
use clap::Subcommand;
use std::path::PathBuf;

/// `muster quota`.
#[derive(Debug, Subcommand)]
pub enum QuotaCommand {
    /// Put the rules of a file in force, in place of all others. If it has a mistake, the rules in force stay
    Load {
        /// The file
        file: PathBuf,
    },
    /// Check a file, without changing anything
    Check {
        /// The file
        file: PathBuf,
    },
    /// Show the rules in force
    Show(QueryOptions),
    /// Take all quotas out of force
    Clear,
}
