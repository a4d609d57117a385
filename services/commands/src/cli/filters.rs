//! `muster filter`.

use super::QueryOptions;
use clap::{Args, Subcommand, ValueEnum};
use muster_schemas::filter::{FilterForm, FilterKind};
use std::path::PathBuf;

/// `muster filter`.
#[derive(Debug, Subcommand)]
pub enum FilterCommand {
    /// List the defined filters
    List(QueryOptions),
    /// Run one filter on this host as a filter-runner would, and show its answer; no job is changed
    Test(FilterTestOptions),
}

/// `muster filter test`.
#[derive(Debug, Args)]
pub struct FilterTestOptions {
    /// The filter: an absolute path, or the name of a defined filter
    #[arg(value_name = "PROGRAM|NAME")]
    pub filter: String,
    /// The job: a file of job XML or JSON
    #[arg(value_name = "JOB.xml")]
    pub job: PathBuf,
    /// What to judge [default: an activation if an option for one is given, else a submission]
    #[arg(long)]
    pub kind: Option<Kind>,
    /// How to call a program given by its path
    #[arg(long, default_value = "exec")]
    pub form: Form,
    /// Call its rollback
    #[arg(long)]
    pub revert: bool,
    /// Time limit in seconds, 1 to 120 [default: the limit of a defined filter, otherwise 15]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=120))]
    pub time_limit: Option<u32>,
    /// An activation: passes of the planner so far
    #[arg(long, value_name = "N")]
    pub pass: Option<u64>,
    /// An activation: the job's place in the queue
    #[arg(long, value_name = "N")]
    pub index: Option<u64>,
    /// An activation: whether it is an attempt to start the job as backfill
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    pub backfill: Option<bool>,
    /// An activation: candidate resources
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// The configuration file.
    #[arg(
        long,
        value_name = "FILE",
        env = "MUSTER_CONFIG",
        hide_env_values = true,
        help = "The configuration file; its section [filter_runner] applies [default: /etc/muster/muster.toml if it exists]"
    )]
    pub config: Option<PathBuf>,
    /// The same options in another notation: `/pass:7 /index:3 /backfill:true /count:16`
    #[arg(value_name = "/OPTION:VALUE")]
    pub more: Vec<String>,
}

/// The kind of judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Whether a job may enter the queue.
    Submission,
    /// Whether a job may take resources now.
    Activation,
}

impl From<Kind> for FilterKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Submission => Self::Submission,
            Kind::Activation => Self::Activation,
        }
    }
}

/// How a filter is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// `PROGRAM JOBXML [PASS INDEX BACKFILL COUNT]`.
    Exec,
    /// `PROGRAM KIND ACTION JOBXML [PASS INDEX BACKFILL COUNT]`.
    Verbs,
    /// `PROGRAM serve`, with a line of JSON for each call.
    Persistent,
}

impl From<Form> for FilterForm {
    fn from(form: Form) -> Self {
        match form {
            Form::Exec => Self::Exec,
            Form::Verbs => Self::Verbs,
            Form::Persistent => Self::Persistent,
        }
    }
}
