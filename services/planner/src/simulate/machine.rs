//! The machine of a simulation.

use muster_schemas::cluster::ClusterConfig;

/// The machine that the jobs run on.
#[derive(Clone, Debug)]
pub enum Machine {
    /// Identical processors without identity.
    Pool {
        /// How many; 1 to [`Machine::MAX_POOL_PROCS`].
        procs: u32,
    },
    /// Nodes, queues and licences as a configuration describes them. A processor is a core.
    Cluster(Box<ClusterConfig>),
}

impl Machine {
    /// The most processors of a pool.
    pub const MAX_POOL_PROCS: u32 = i32::MAX.unsigned_abs();

    /// Processors of the whole machine.
    pub fn procs(&self) -> u64 {
        match self {
            Self::Pool { procs } => u64::from(*procs),
            Self::Cluster(config) => config.nodes.iter().map(|node| u64::from(node.cores)).sum(),
        }
    }
}
