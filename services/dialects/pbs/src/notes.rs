//! Texts of launches: the last line of a job that was ended.

use crate::value::show_seconds;

/// The last line of a job that reached its walltime.
pub fn walltime(seconds: u64) -> String {
    format!("=>> PBS: job killed: walltime exceeded limit {}\n", show_seconds(seconds))
}
