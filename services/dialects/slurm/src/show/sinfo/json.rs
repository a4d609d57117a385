//! `sinfo --json`.

use super::{NodeRecord, Partition};
use crate::show::data::{Asker, moment};
use muster_schemas::time::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

/// The document of nodes with their partitions.
pub fn document(partitions: &[Arc<Partition>], nodes: &[Arc<NodeRecord>], asker: &Asker<'_>, now: Timestamp) -> Value {
    let nodes: Vec<Value> = nodes.iter().map(|node| of_node(node, partitions)).collect();
    asker.document("nodes", nodes, &[("last_update", moment(Some(now)))])
}

fn of_node(node: &NodeRecord, partitions: &[Arc<Partition>]) -> Value {
    let serving = partitions.iter().filter(|partition| partition.has(node));
    let names: Vec<&str> = serving.map(|partition| partition.name.as_str()).collect();
    let flags = node.state.flags();
    json!({
        "name": node.name,
        "hostname": node.name,
        "state": flags.trim_end_matches('*').split('+').collect::<Vec<_>>(),
        "responding": !node.state.is_silent,
        "partitions": names,
        "cpus": node.cpus,
        "alloc_cpus": node.cpus_used,
        "real_memory": node.megabytes,
        "alloc_memory": node.megabytes_used,
        "features": node.features,
        "gres": node.gres,
        "gres_drained": if node.gres_drained.is_empty() { "N/A" } else { &node.gres_drained },
        "gres_used": node.gres_used,
        "reason": node.reason.as_deref().unwrap_or_default(),
        "reason_set_by_user": node.reason_user.as_deref().unwrap_or_default(),
    })
}
