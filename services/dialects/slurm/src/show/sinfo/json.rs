//! `sinfo --json`.

use super::{NodeRecord, Partition};
use crate::show::{
    data::{Asker, moment},
    tres,
};
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
    let features: Vec<&str> = node.features.split(',').filter(|name| !name.is_empty()).collect();
    json!({
        "name": node.name,
        "address": node.name,
        "boards": 1,
        "comment": "",
        "extra": "",
        "hostname": node.name,
        "state": flags.trim_end_matches('*').split('+').collect::<Vec<_>>(),
        "responding": !node.state.is_silent,
        "partitions": names,
        "cpus": node.cpus,
        "effective_cpus": node.cpus,
        "cpu_load": node.load_millionths.map_or(0, |load| load / 10_000),
        "sockets": node.sockets,
        "cores": node.cores_per_socket(),
        "threads": 1,
        "alloc_idle_cpus": node.cpu_counts()[1],
        "alloc_cpus": node.cpus_used,
        "real_memory": node.megabytes,
        "alloc_memory": node.megabytes_used,
        "features": features,
        "active_features": features,
        "temporary_disk": node.tmp_disk_megabytes,
        "weight": node.weight,
        "tres": tres::of_node(node.cpus.into(), node.megabytes) + &tres::gpus(node.gpus),
        "tres_used": match node.cpus_used {
            0 => String::new(),
            used => tres::of_node(used.into(), node.megabytes_used) + &tres::gpus(node.gpus_used),
        },
        "gres": node.gres,
        "gres_drained": if node.gres_drained.is_empty() { "N/A" } else { &node.gres_drained },
        "gres_used": node.gres_used,
        "reason": node.reason.as_deref().unwrap_or_default(),
        "reason_changed_at": moment(node.reason_time),
        "reason_set_by_user": node.reason_user.as_deref().unwrap_or_default(),
    })
}
