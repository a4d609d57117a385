//! The grammar of the verbs that people try first.

use super::QueryOptions;
use crate::{job_options::JobOptions, values};
use clap::Args;
use muster_schemas::JobId;

/// `muster status`.
#[derive(Debug, Args)]
pub struct StatusOptions {
    /// When, and in which form.
    #[command(flatten)]
    pub query: QueryOptions,
    /// These jobs, arrays or tasks instead, also finished ones
    #[arg(value_name = "ID")]
    pub ids: Vec<JobId>,
}

/// `muster top`.
#[derive(Debug, Args)]
pub struct TopOptions {
    /// Seconds between refreshes
    #[arg(short = 'i', long, value_name = "SECONDS", value_parser = values::parse_positive, default_value = "2")]
    pub interval: u32,
    /// Look once
    #[arg(long)]
    pub once: bool,
}

/// `muster shell`.
#[derive(Debug, Args)]
#[command(
    override_usage = "muster shell [OPTIONS] JOB [-- COMMAND [ARGS]...]\n       muster shell [OPTIONS] [-- COMMAND [ARGS]...]"
)]
pub struct ShellOptions {
    /// The running job; without it a job is submitted, which ends with the shell
    #[arg(conflicts_with = "JobOptions", value_name = "JOB")]
    pub id: Option<JobId>,
    /// What to run instead of your shell
    #[arg(last = true, value_name = "COMMAND")]
    pub words: Vec<String>,
    /// What that job is.
    #[command(flatten)]
    pub job: JobOptions,
}
