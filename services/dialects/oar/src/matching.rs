//! Finds the resources for a request among those that are free.

mod groups;
mod tree;

pub use groups::{Forest, Lack};
