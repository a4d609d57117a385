//! Finds the resources for a request among those that are free.

mod groups;
mod possible;
mod tree;

pub use groups::{Forest, Lack};
pub use possible::possible;
