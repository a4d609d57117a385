//! The load generator and the contents of `ops/`, on real systems.

mod common;
mod local_cluster;
mod operations;
mod replay;
