//! The words of `muster agent`.

use crate::values;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `muster agent`.
#[derive(Debug, Args)]
pub struct AgentOptions {
    /// What to do other than to run
    #[command(subcommand)]
    pub command: Option<AgentCommand>,
    /// The name of the node [default: this host's name up to the first dot]
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Where the jobs run and their files are kept [default: $XDG_STATE_HOME/muster-agent]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// A file with the token, instead of MUSTER_TOKEN; other users must not be able to read it
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// How often to ask for work, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=300))]
    pub period: u32,
    /// CPUs of the node, if the agent makes the node [default: this host's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub cpus: Option<u32>,
    /// Memory of the node, such as 16G, if the agent makes the node [default: this host's]
    #[arg(long, value_name = "SIZE", value_parser = values::parse_size)]
    pub memory: Option<u64>,
    /// How long files that jobs bring are kept unused, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub keep: u32,
    /// The most bytes of the files that a job brings, and of those that it leaves
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = values::parse_size)]
    pub max_archive: u64,
}

/// The verbs of `muster agent`.
#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Make a token for the agent of a node: it goes to standard output, and the line for the gateway's file to standard error
    Token {
        /// The node
        node: String,
    },
}
