//! The variables of jobs.

mod launch;
mod submission;

pub use launch::{HOSTS, NODE_FILE, hosts, node_file, of_launch, soft_limits};
pub use submission::{FLAVOUR, LIMITS, LOADS_LOGIN, Submitted, of_submission};
