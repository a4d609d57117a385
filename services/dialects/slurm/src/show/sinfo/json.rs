//! `sinfo --json`.

use super::{NodeRecord, Partition};
use serde_json::{Value, json};
use std::sync::Arc;

/// Nodes with their partitions as an object with `meta`, `nodes` and `errors`.
pub fn json(version: &str, partitions: &[Arc<Partition>], nodes: &[Arc<NodeRecord>]) -> Value {
    let nodes: Vec<Value> = nodes.iter().map(|node| of_node(node, partitions)).collect();
    json!({
        "meta": { "plugin": { "type": "muster", "name": "sinfo" }, "slurm": { "release": version } },
        "nodes": nodes,
        "errors": [],
    })
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
        "gres_used": node.gres_used,
        "reason": node.reason.as_deref().unwrap_or_default(),
        "reason_set_by_user": node.reason_user.as_deref().unwrap_or_default(),
    })
}
