//! The options for the moment and the form of an answer.

use crate::values;
use clap::Args;
use muster_client::Moment;
use muster_schemas::{Sequence, Timestamp};

/// A moment of the past, and the form of the answer.
#[derive(Clone, Debug, Default, Args)]
pub struct QueryOptions {
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
    /// As it was at this time: `08:30`, `2026-11-20 08:30`, `-10m`, `"2 hours ago"`
    #[arg(long, value_name = "TIME", value_parser = values::parse_at, allow_hyphen_values = true, conflicts_with = "at_seq")]
    pub at: Option<Timestamp>,
    /// As it was after the record with this sequence
    #[arg(long, value_name = "N")]
    pub at_seq: Option<u64>,
}

impl QueryOptions {
    /// The moment that the answer should describe.
    pub fn moment(&self) -> Moment {
        match (self.at, self.at_seq) {
            (Some(time), _) => Moment::Time(time),
            (None, Some(sequence)) => Moment::Sequence(Sequence(sequence)),
            (None, None) => Moment::Now,
        }
    }
}
