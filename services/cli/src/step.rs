//! The input and output of a step's tasks.

pub mod input;
pub mod output;
