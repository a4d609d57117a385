//! The words of `muster ledgers`.

use clap::{Args, Subcommand};

/// `muster ledgers`.
#[derive(Debug, Args)]
pub struct LedgersOptions {
    /// What to do other than to list them
    #[command(subcommand)]
    pub command: Option<LedgersCommand>,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
}

/// The verbs of `muster ledgers`.
#[derive(Debug, Subcommand)]
pub enum LedgersCommand {
    /// Let another ledger lead, and wait until it does. For operators
    HandOver {
        /// The ledger that leads next, by its name [default: any that stands by]
        #[arg(value_name = "LEDGER")]
        ledger: Option<String>,
    },
}
