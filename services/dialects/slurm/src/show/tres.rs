//! Trackable resources, as one text: `cpu=4,mem=40M,node=2,billing=4`.

use super::record::{JobRecord, MinMemory};
use crate::size;

/// The resources that a job has or asks for.
pub fn of_job(job: &JobRecord) -> String {
    text(job.cpus, megabytes_of(job), job.node_count)
}

/// The memory of a job on all its nodes, in megabytes.
pub fn megabytes_of(job: &JobRecord) -> Option<u64> {
    job.request().memory.map(|memory| match memory {
        MinMemory::PerCpu(megabytes) => megabytes.saturating_mul(job.cpus),
        MinMemory::PerNode(megabytes) => megabytes.saturating_mul(u64::from(job.node_count)),
    })
}

/// A number of processors, megabytes and nodes.
pub fn text(cpus: u64, megabytes: Option<u64>, nodes: u32) -> String {
    let memory = match megabytes {
        Some(megabytes) if megabytes > 0 => format!("mem={},", size::show_megabytes(megabytes)),
        _ => String::new(),
    };
    format!("cpu={cpus},{memory}node={nodes},billing={cpus}")
}

/// The size of a node.
pub fn of_node(cpus: u64, megabytes: u64) -> String {
    match megabytes {
        0 => format!("cpu={cpus}"),
        megabytes => format!("cpu={cpus},mem={}", size::show_megabytes(megabytes)),
    }
}
