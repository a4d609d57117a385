//! What a job asks for: `-l /switch=1/nodes=2+{gpu='YES'}/core=4,walltime=2:0:0` and `-p`.

pub mod demand;
mod parse;
pub mod site;
pub mod walltime;

pub use parse::{alternative, alternatives, filter};
