//! The input and output of a step's tasks, and commands that stay with a step.

pub mod attend;
pub mod input;
pub mod output;
