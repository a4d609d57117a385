//! The words of `muster backup` and `muster restore`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `muster backup`.
#[derive(Debug, Args)]
pub struct BackupOptions {
    /// What to do other than to make a backup
    #[command(subcommand)]
    pub command: Option<BackupCommand>,
    /// The folder of backups; made if it is missing
    #[arg(required = true, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Copy the cluster's private key too: whoever can read the backup can then sign in the cluster's name
    #[arg(long)]
    pub with_key: bool,
    /// Do not verify the copy
    #[arg(long)]
    pub no_verify: bool,
    /// Keep this many backups, and remove older ones [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: Option<u32>,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
}

/// The verbs of `muster backup`.
#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// List the backups in a folder, the oldest first
    List {
        /// The folder of backups
        dir: PathBuf,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
}

/// `muster restore`.
#[derive(Debug, Args)]
pub struct RestoreOptions {
    /// The folder of backups
    pub dir: PathBuf,
    /// The backup, by its name [default: the latest]
    #[arg(long, value_name = "NAME")]
    pub backup: Option<String>,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
}
