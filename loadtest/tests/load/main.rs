//! The load generator and what `ops/` holds, on real systems.

mod common;
mod local_cluster;
mod operations;
mod replay;
