//! What an alternative demands of a node, and how long a demand may last.

use crate::{free::FreeNode, machine::MachineNode, model::Demand};
use muster_schemas::resources::{Alternative, Level};

/// Whether a node is what the requests of an alternative and the queue ask for.
pub(crate) fn serves_kind(node: &MachineNode, queue_nodes: &[String], alternative: &Alternative) -> bool {
    (queue_nodes.is_empty() || queue_nodes.contains(&node.spec.name))
        && alternative.requests.iter().all(|request| muster_domain::requests::node_serves(&node.spec, request))
}

pub(super) fn fits_sharing(free: &FreeNode, alternative: &Alternative) -> bool {
    free.idle || fits_any_sharing(alternative)
}

pub(super) fn fits_any_sharing(alternative: &Alternative) -> bool {
    let shared = muster_schemas::resources::Sharing::Shared;
    alternative.requests.iter().all(|request| request.sharing == shared)
}

/// The longest walltime of all alternatives; `None` if one has none.
pub(crate) fn longest(demand: &Demand) -> Option<u64> {
    let alternatives = demand.components.iter().flat_map(|component| component.alternatives.iter());
    let walltimes = alternatives.map(|alternative| alternative.walltime_seconds).collect::<Option<Vec<u64>>>()?;
    walltimes.into_iter().max()
}

/// Counts do not tell which sockets are free later, so such a request gets nodes whose cores are all free.
pub(super) fn asks_for_sockets(alternative: &Alternative) -> bool {
    alternative.requests.iter().any(|request| request.path.iter().any(|part| part.level == Level::Socket))
}
