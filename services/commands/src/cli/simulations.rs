//! `muster simulate` and `whatif`.

use crate::values;
use clap::Args;
use muster_schemas::Timestamp;
use std::path::PathBuf;

/// `muster simulate`.
#[derive(Debug, Args)]
pub struct SimulateOptions {
    /// A job trace in the Standard Workload Format, plain or gzip-compressed
    pub trace: PathBuf,
    /// A built-in policy (fcfs, easy, conservative, spt, saf, f1, wfp3, unicep) or a policy file
    #[arg(long, value_name = "NAME|FILE", required_unless_present = "compare")]
    pub policy: Option<String>,
    /// Processors of the machine [default: what the trace's headers say]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "cluster")]
    pub procs: Option<u64>,
    /// Run on the nodes, queues and licences of a configuration file instead of one pool of processors
    #[arg(long, value_name = "FILE")]
    pub cluster: Option<PathBuf>,
    /// Let jobs ask for whole nodes of this many cores if their processors are a multiple of it, and for cores of one node if they
    /// are fewer; others ask for processors anywhere
    #[arg(long, value_name = "CORES", requires = "cluster", value_parser = clap::value_parser!(u32).range(1..))]
    pub nodes_of: Option<u32>,
    /// Let nodes sleep after this time without job, and tell the energy that they use; how long they take to wake and what they
    /// use is in `[energy]` of the configuration file
    #[arg(long, value_name = "SECONDS", requires = "cluster")]
    pub sleep_after: Option<u32>,
    /// Number of accepted jobs to skip at the beginning
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip: usize,
    /// Maximum number of accepted jobs
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Write a CSV row for each job to this file; `-` is standard output, and the summary then goes to standard error
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    pub out: Option<PathBuf>,
    /// Print the summary as JSON, on one line
    #[arg(long)]
    pub json: bool,
    /// Draw waits, utilization and queue length as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Draw the same as PNG
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
    /// Run several policies and show them side by side
    #[arg(long, value_name = "NAME|FILE", num_args = 1..)]
    pub compare: Vec<String>,
}

/// `muster whatif`.
#[derive(Debug, Args)]
pub struct WhatifOptions {
    /// A built-in policy, a policy file, or `in-force` for the policy that the log says was in force
    #[arg(long, value_name = "NAME|FILE")]
    pub policy: String,
    /// Begin with the cluster as it was at this time [default: the beginning of the log]
    #[arg(long, value_name = "TIME", value_parser = values::parse_past, allow_hyphen_values = true)]
    pub from: Option<Timestamp>,
    /// Compare only jobs that were submitted before this time
    #[arg(long, value_name = "TIME", value_parser = values::parse_past, allow_hyphen_values = true)]
    pub to: Option<Timestamp>,
    /// Starts that differ by at most this many seconds count as equal
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub tolerance: f64,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
    /// Draw waits, utilization and queue length before and after as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Instead tell the energy that nodes would have used by the log's own runs if they slept after this time without job
    #[arg(long, value_name = "SECONDS")]
    pub sleep_after: Option<u32>,
    /// How long nodes take to wake, and to fall asleep, with `--sleep-after`
    #[arg(long, value_name = "SECONDS", default_value_t = 300, requires = "sleep_after")]
    pub wake_up: u32,
}
