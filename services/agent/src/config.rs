use muster_client::Endpoint;
use std::{path::PathBuf, time::Duration};

/// Settings of an agent.
#[derive(Clone, Debug)]
pub struct Config {
    /// The gateway that it asks, with the agent's token.
    pub server: Endpoint,
    /// The name of its node.
    pub node: String,
    /// Where it keeps the folders of jobs and the files that they bring.
    pub folder: PathBuf,
    /// Cores of the node, if the node is made.
    pub cores: u32,
    /// Memory of the node in bytes, if the node is made.
    pub memory_bytes: u64,
    /// How long files that jobs bring are kept unused (OAR-K-08).
    pub keep: Duration,
    /// The most bytes of the files that a job brings, and of those that it leaves.
    pub max_archive_bytes: u64,
}

impl Config {
    /// How long files that jobs bring are kept unused, by default.
    pub const KEEP: Duration = Duration::from_secs(300);
    /// The most bytes of the files of a job, by default.
    pub const MAX_ARCHIVE_BYTES: u64 = 1 << 30;
}
