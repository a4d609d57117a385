//! `muster explain`, `plan` and `replay`.

use super::QueryOptions;
use crate::values;
use clap::Args;
use muster_schemas::{JobId, Timestamp};
use std::path::PathBuf;

/// `muster explain`.
#[derive(Debug, Args)]
pub struct ExplainOptions {
    /// When, and in which form.
    #[command(flatten)]
    pub query: QueryOptions,
    /// The job, array or task
    pub job: JobId,
}

/// `muster plan`.
#[derive(Debug, Args)]
pub struct PlanOptions {
    /// When, and in which form.
    #[command(flatten)]
    pub query: QueryOptions,
    /// Only jobs of this queue
    #[arg(long, value_name = "QUEUE", conflicts_with = "accuracy")]
    pub queue: Option<String>,
    /// Maximum number of waiting jobs, first in order
    #[arg(long, value_name = "N", conflicts_with = "accuracy")]
    pub limit: Option<u32>,
    /// Draw what runs and is promised on each node to this file instead
    #[arg(long, visible_alias = "picture", value_name = "FILE", conflicts_with_all = ["accuracy", "json"])]
    pub svg: Option<PathBuf>,
    /// Show how accurate the predictions of starts were instead
    #[arg(long, conflicts_with_all = ["at", "at_seq"])]
    pub accuracy: bool,
    /// Only jobs started since then [default: a day ago]
    #[arg(long, value_name = "TIME", value_parser = parse_since, allow_hyphen_values = true, requires = "accuracy")]
    pub since: Option<Timestamp>,
}

/// `muster replay`.
#[derive(Debug, Args)]
pub struct ReplayOptions {
    /// Compare with the digests that checkpoints recorded, and repeat every decision of the planner
    #[arg(long)]
    pub verify: bool,
    /// Make the decisions under this policy instead: a built-in one or a file
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "verify")]
    pub against: Option<String>,
    /// Begin with the record of this sequence, from the newest snapshot before it [default: the first]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub from_seq: Option<u64>,
    /// Fold up to the record with this sequence [default: the last]
    #[arg(long, value_name = "N", visible_alias = "to-seq")]
    pub at_seq: Option<u64>,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
}

/// A point in the past, or a length of time before now: `1d` is a day ago.
fn parse_since(text: &str) -> Result<Timestamp, String> {
    let is_length = text.starts_with(|first: char| first.is_ascii_digit())
        && text.ends_with(|last: char| last.is_ascii_alphabetic())
        && !text.contains([':', ' ']);
    let ago = is_length.then(|| values::parse_past(&format!("-{text}")).ok()).flatten();
    ago.map_or_else(|| values::parse_past(text), Ok)
}
