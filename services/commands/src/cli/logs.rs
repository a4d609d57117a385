//! The grammar of `muster logs`.

use crate::values;
use clap::Args;
use muster_schemas::JobId;

/// `muster logs`.
#[derive(Debug, Args)]
pub struct LogsOptions {
    /// Continue as the job writes, until it has ended
    #[arg(short = 'f', long)]
    pub follow: bool,
    /// Standard error, if it goes to a separate file
    #[arg(short = 'e', long)]
    pub stderr: bool,
    /// Only the last lines
    #[arg(short = 'n', long, value_name = "N", value_parser = values::parse_positive)]
    pub lines: Option<u32>,
    /// Print the name of the file instead
    #[arg(long, conflicts_with_all = ["follow", "lines"])]
    pub path: bool,
    /// The job, or a task of an array such as 12_3
    #[arg(value_name = "JOB[_TASK]")]
    pub job: JobId,
}

impl LogsOptions {
    /// Standard output of a job, from its first to its last line.
    pub const fn following(job: JobId) -> Self {
        Self { follow: true, stderr: false, lines: None, path: false, job }
    }
}
