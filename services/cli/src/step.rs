//! What the tasks of a step read and say.

pub mod input;
pub mod output;
