//! `scontrol show --json` and `--yaml` of what is no job (SL-A-11): in the shape of Slurm's `data_parser`. Fields that say
//! nothing here are left out.

use crate::{
    hostlist,
    queries::reservation_flags::Flags,
    show::Clock,
    show::{
        data::{limit, moment, number, partition_state},
        sinfo::{NodeRecord, Partition},
        step::StepRecord,
        tres,
    },
};
use muster_schemas::views::{LicenceView, ReservationView};
use serde_json::{Value, json};

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
        "defaults": { "memory_per_cpu": 0, "time": number(minutes(spec.default_walltime_seconds)), "job": "" },
        "grace_time": spec.makes_way.map_or(0, |way| way.grace_seconds),
        "maximums": {
            "cpus_per_node": limit(None),
            "cpus_per_socket": limit(None),
            "memory_per_cpu": 0,
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

/// A reservation of nodes with this many cores.
pub fn reservation_data(view: &ReservationView, cores: u64) -> Value {
    let spec = &view.spec;
    let flags = Flags::of(spec).shown();
    let flags: Vec<&str> = flags.split(',').filter(|flag| !flag.is_empty()).collect();
    json!({
        "accounts": spec.accounts.join(","),
        "burst_buffer": "",
        "core_count": cores,
        "core_specializations": [],
        "end_time": moment(Some(spec.end)),
        "features": "",
        "flags": flags,
        "groups": "",
        "licenses": "",
        "max_start_delay": 0,
        "name": spec.name,
        "node_count": view.nodes.len(),
        "node_list": hostlist::compress_sorted(&view.nodes),
        "partition": "",
        "purge_completed": { "time": number(None) },
        "start_time": moment(Some(spec.start)),
        "tres": format!("cpu={cores}"),
        "users": spec.users.join(","),
    })
}

/// A running step.
pub fn step_data(step: &StepRecord, cluster: &str, clock: &Clock) -> Value {
    let minutes = step.limit_seconds.map(|seconds| seconds.div_ceil(60));
    json!({
        "cluster": cluster,
        "id": step.shown_id(),
        "name": step.name,
        "network": "",
        "nodes": hostlist::compress_sorted(&step.nodes),
        "number_cpus": step.cpus,
        "number_tasks": step.tasks,
        "partition": step.partition,
        "state": [step.state.to_string()],
        "task": { "distribution": step.distribution.layout() },
        "time": {
            "limit": limit(minutes),
            "running": number(Some(step.used_seconds(clock))),
            "start": moment(step.started),
        },
        "tres": { "allocation": format!("cpu={},node={}{}", step.cpus, step.nodes.len(), tres::gpus(step.gpus)) },
        "user": step.user,
    })
}

/// A licence.
pub fn licence_data(licence: &LicenceView, clock: &Clock) -> Value {
    json!({
        "LicenseName": licence.name,
        "Total": licence.total,
        "Used": licence.used,
        "Free": licence.total.saturating_sub(licence.used),
        "Remote": false,
        "Reserved": 0,
        "LastConsumed": 0,
        "LastDeficit": 0,
        "LastUpdate": clock.now.unix_seconds(),
    })
}

/// What a controller's host answered, after this many microseconds.
pub fn ping_data(host: &str, is_up: bool, micros: u64) -> Value {
    json!({ "hostname": host, "pinged": if is_up { "UP" } else { "DOWN" }, "latency": micros, "mode": "primary" })
}
