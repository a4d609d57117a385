//! Trackable resources, as one text: `cpu=4,mem=40M,node=2,billing=4`.

use super::record::{JobRecord, MinMemory};
use crate::size::Units;

/// The resources that a job has or asks for.
pub fn of_job(job: &JobRecord, units: Units) -> String {
    let memory = match megabytes_of(job) {
        Some(megabytes) if megabytes > 0 => format!("mem={},", units.show_megabytes(megabytes)),
        _ => String::new(),
    };
    let (cpus, nodes) = (job.cpus, job.node_count);
    format!("cpu={cpus},{memory}node={nodes},billing={cpus}{}", gpus(job.gpus))
}

/// The GPUs, after other resources.
pub fn gpus(count: u64) -> String {
    if count == 0 { String::new() } else { format!(",gres/gpu={count}") }
}

/// The memory of a job on all its nodes, in megabytes.
pub fn megabytes_of(job: &JobRecord) -> Option<u64> {
    job.request().memory.map(|memory| match memory {
        MinMemory::PerCpu(megabytes) => megabytes.saturating_mul(job.cpus),
        MinMemory::PerNode(megabytes) => megabytes.saturating_mul(u64::from(job.node_count)),
    })
}

/// The size of a node, or what jobs have of it.
pub fn of_node(cpus: u64, megabytes: u64) -> String {
    match megabytes {
        0 => format!("cpu={cpus}"),
        megabytes => format!("cpu={cpus},mem={}", Units::Largest.show_megabytes(megabytes)),
    }
}
