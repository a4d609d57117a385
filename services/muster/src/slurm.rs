//! What jobs of Slurm get when the executor launches them, and when they end.

mod endings;
mod variables;

pub use endings::note as end_note;
pub use variables::{process_id_variable, soft_limits, variables};
