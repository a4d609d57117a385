//! Nodes, partitions and the overview of `sinfo` as data (SL-C-28).

use super::{Group, NodeRecord, Partition};
use crate::{
    hostlist,
    show::{
        data::{Asker, joined, limit, moment, number, partition_state, seconds},
        tres,
    },
    words::NodeState,
};
use muster_schemas::time::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

/// The document of nodes with their partitions, as `scontrol show nodes --json` prints it.
/// Executors have the version of this program.
pub fn document(
    partitions: &[Arc<Partition>],
    nodes: &[Arc<NodeRecord>],
    version: &str,
    asker: &Asker<'_>,
    now: Timestamp,
) -> Value {
    let nodes: Vec<Value> = nodes.iter().map(|node| of_node(node, partitions, version)).collect();
    asker.document("nodes", nodes, &[("last_update", moment(Some(now)))])
}

fn of_node(node: &NodeRecord, partitions: &[Arc<Partition>], version: &str) -> Value {
    let serving = partitions.iter().filter(|partition| partition.has(node));
    let names: Vec<&str> = serving.map(|partition| partition.name.as_str()).collect();
    let features: Vec<&str> = node.features.split(',').filter(|name| !name.is_empty()).collect();
    let own = json!({
        "name": node.name,
        "address": node.name,
        "boards": 1,
        "comment": "",
        "extra": "",
        "hostname": node.name,
        "state": states(node.state),
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
        "reservation": node.reservation,
    });
    let machine = json!({
        "architecture": "x86_64",
        "operating_system": "Linux",
        "version": version,
        "boot_time": moment(None),
        "slurmd_start_time": moment(None),
        "last_busy": moment(None),
        "free_mem": number(Some(node.megabytes.saturating_sub(node.megabytes_used))),
        "topology": node.switch.as_ref().map_or_else(String::new, |switch| format!("{switch}.{}", node.name)),
        "port": 0,
        "cluster_name": "",
        "burstbuffer_network_address": "",
        "tls_cert_last_renewal": moment(None),
        "cert_flags": [],
        "specialized_cores": 0,
        "specialized_cpus": "",
        "specialized_memory": 0,
        "cpu_binding": 0,
        "energy": {
            "average_watts": 0, "base_consumed_energy": 0, "consumed_energy": 0, "current_watts": number(None),
            "previous_consumed_energy": 0, "last_collected": 0,
        },
        "gpu_spec": "",
        "res_cores_per_gpu": 0,
        "instance_id": "",
        "instance_type": "",
        "mcs_label": "",
        "next_state_after_reboot": ["INVALID"],
        "owner": "",
        "resume_after": number(None),
    });
    joined([own, machine])
}

/// The words of a state, each by itself.
fn states(state: NodeState) -> Vec<String> {
    let flags = state.flags();
    let words = flags.trim_end_matches('*').split('+').filter(|word| !word.is_empty()).map(str::to_owned);
    words.chain(state.is_silent.then(|| "NOT_RESPONDING".to_owned())).collect()
}

/// A line of the overview; `nodes` are those of the cluster.
pub(super) fn group<'a>(group: &Group, nodes: impl IntoIterator<Item = &'a NodeRecord>, cluster: &str) -> Value {
    let own = &group.nodes;
    let first = own.first().map(|node| &**node);
    let names: Vec<&str> = own.iter().map(|node| node.name.as_str()).collect();
    let range = |of: &dyn Fn(&NodeRecord) -> u64| {
        let all = || own.iter().map(|node| of(node));
        json!({ "minimum": all().min().unwrap_or(0), "maximum": all().max().unwrap_or(0) })
    };
    let states = group.state().map(states).unwrap_or_default();
    let [busy, idle, other, total] = group.node_counts();
    let cpu_counts: Vec<[u64; 4]> = own.iter().map(|node| node.cpu_counts()).collect();
    let cpus = |at: usize| cpu_counts.iter().map(|counts| counts[at]).sum::<u64>();
    let of_cpus = range(&|node| node.cpus.into());
    let memory = range(&|node| node.megabytes);
    let free = |of: &dyn Fn(std::vec::IntoIter<u64>) -> Option<u64>| {
        let all: Vec<u64> = own.iter().map(|node| node.megabytes.saturating_sub(node.megabytes_used)).collect();
        number(of(all.into_iter()))
    };
    json!({
        "port": 0,
        "node": { "state": states },
        "nodes": {
            "allocated": busy, "idle": idle, "other": other, "total": total,
            "hostnames": names, "addresses": names, "nodes": names,
        },
        "cpus": {
            "allocated": cpus(0), "idle": cpus(1), "other": cpus(2), "total": cpus(3),
            "minimum": of_cpus["minimum"], "maximum": of_cpus["maximum"],
            "load": range(&|node| node.load_millionths.map_or(0, |load| load / 10_000)),
            "per_node": { "max": limit(None) },
        },
        "sockets": range(&|node| node.sockets.into()),
        "cores": range(&|node| node.cores_per_socket().into()),
        "threads": { "minimum": 1, "maximum": 1 },
        "disk": range(&|node| node.tmp_disk_megabytes),
        "memory": {
            "minimum": memory["minimum"], "maximum": memory["maximum"],
            "free": { "minimum": free(&|all| all.min()), "maximum": free(&|all| all.max()) },
            "allocated": own.iter().map(|node| node.megabytes_used).sum::<u64>(),
        },
        "weight": range(&|node| node.weight),
        "features": {
            "total": first.map_or("", |node| &node.features), "active": first.map_or("", |node| &node.features),
        },
        "gres": { "total": first.map_or("", |node| &node.gres), "used": first.map_or("", |node| &node.gres_used) },
        "cluster": cluster,
        "comment": "",
        "extra": "",
        "reason": {
            "description": first.and_then(|node| node.reason.as_deref()).unwrap_or_default(),
            "user": first.and_then(|node| node.reason_user.as_deref()).unwrap_or_default(),
            "time": seconds(first.and_then(|node| node.reason_time)),
        },
        "resource_spec": { "cpus": "", "memory": 0 },
        "reservation": first.map_or("", |node| &node.reservation),
        "partition": partition_data(&group.partition, None, nodes),
    })
}

/// A partition with this QOS; `nodes` are those of the cluster.
pub fn partition_data<'a>(
    partition: &Partition,
    class: Option<&str>,
    nodes: impl IntoIterator<Item = &'a NodeRecord>,
) -> Value {
    let spec = &partition.spec;
    let own: Vec<&NodeRecord> = nodes.into_iter().filter(|node| partition.has(node)).collect();
    let names: Vec<&str> = own.iter().map(|node| node.name.as_str()).collect();
    let cpus: u64 = own.iter().map(|node| u64::from(node.cpus)).sum();
    let (megabytes, gpus) = (own.iter().map(|node| node.megabytes).sum(), own.iter().map(|node| node.gpus).sum());
    let minutes = |seconds: Option<u64>| seconds.map(|seconds| seconds.div_ceil(60));
    let [least_nodes, most_nodes] = partition.nodes_asked();
    let configured =
        format!("{},node={},billing={cpus}{}", tres::of_node(cpus, megabytes), own.len(), tres::gpus(gpus));
    json!({
        "name": partition.name,
        "nodes": { "allowed_allocation": "", "configured": hostlist::compress_sorted(&names), "total": own.len() },
        "accounts": { "allowed": "", "deny": "" },
        "groups": { "allowed": "" },
        "qos": { "allowed": "", "deny": "", "assigned": class.unwrap_or_default() },
        "alternate": "",
        "tres": { "billing_weights": "", "configured": configured },
        "cluster": "",
        "cpus": { "task_binding": 0, "total": cpus },
        "select_type": ["CPU", "MEMORY"],
        "topology": "",
        "defaults": {
            "memory_per_cpu": 0,
            "partition_memory_per_cpu": number(None),
            "partition_memory_per_node": number(None),
            "time": number(minutes(spec.default_walltime_seconds)),
            "job": "",
        },
        "grace_time": spec.makes_way.map_or(0, |way| way.grace_seconds),
        "maximums": {
            "cpus_per_node": limit(None),
            "cpus_per_socket": limit(None),
            "memory_per_cpu": 0,
            "partition_memory_per_cpu": number(None),
            "partition_memory_per_node": number(None),
            "nodes": limit(most_nodes),
            "shares": 1,
            "oversubscribe": { "jobs": 1, "flags": [] },
            "time": limit(minutes(spec.max_walltime_seconds)),
            "over_time_limit": number(None),
        },
        "minimums": { "nodes": least_nodes.unwrap_or(0) },
        "node_sets": "",
        "priority": { "job_factor": 1, "tier": spec.priority },
        "timeouts": { "resume": number(None), "suspend": number(None) },
        "partition": { "state": [partition_state(partition.available())] },
        "suspend_time": number(None),
    })
}
