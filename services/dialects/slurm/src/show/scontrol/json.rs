//! `scontrol show --json` and `--yaml` of what is no job (SL-A-11): in the shape of Slurm's `data_parser`. Fields that say
//! nothing here are left out.

use crate::{
    hostlist,
    queries::reservation_flags::Flags,
    show::Clock,
    show::{
        data::{limit, moment, number},
        period,
        step::StepRecord,
        tres,
    },
};
use muster_schemas::{
    plan::ReservedNodes,
    time::Timestamp,
    views::{LicenceView, ReservationView},
};
use serde_json::{Value, json};

/// Slurm's number of a task for a job that is no array.
const NO_TASK: u64 = 4_294_967_294;

/// A reservation of nodes with this many cores.
pub fn reservation_data(view: &ReservationView, cores: u64, now: Timestamp) -> Value {
    let spec = &view.spec;
    let (start, end) = period::of(spec, now);
    let queue = match &spec.nodes {
        ReservedNodes::Count { queue, .. } => queue.as_deref().unwrap_or_default(),
        ReservedNodes::Named(_) => "",
    };
    let flags = Flags::of(spec).shown();
    // The time of one of them has a field of its own.
    let names = flags.split(',').filter(|flag| !flag.is_empty());
    let flags: Vec<&str> = names.map(|flag| flag.split_once('=').map_or(flag, |(name, _)| name)).collect();
    let idle_seconds = Some(spec.ends_after_idle_seconds).filter(|seconds| *seconds > 0);
    json!({
        "accounts": spec.accounts.join(","),
        "burst_buffer": "",
        "core_count": cores,
        "core_specializations": [],
        "end_time": moment(Some(end)),
        "features": "",
        "flags": flags,
        "groups": "",
        "licenses": "",
        "max_start_delay": 0,
        "name": spec.name,
        "node_count": view.nodes.len(),
        "node_list": hostlist::compress_sorted(&view.nodes),
        "partition": queue,
        "purge_completed": { "time": number(idle_seconds) },
        "start_time": moment(Some(start)),
        "tres": format!("cpu={cores}"),
        "users": spec.users.join(","),
    })
}

/// A running step.
pub fn step_data(step: &StepRecord, cluster: &str, clock: &Clock) -> Value {
    let minutes = step.limit_seconds.map(|seconds| seconds.div_ceil(60));
    let array = step.shown_job.split_once('_').and_then(|(job, task)| Some((job.parse().ok()?, task.parse().ok()?)));
    let (array_job, array_task): (u64, u64) = array.unwrap_or((0, NO_TASK));
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
        "tres": {
            "allocation": format!("cpu={},node={}{}", step.cpus, step.nodes.len(), tres::gpus(step.gpus)),
            "binding": "",
            "frequency": "",
            "per": { "cpu": "", "memory": "", "step": "", "node": "", "socket": "", "task": "" },
        },
        "user": step.user,
        "array": { "job_id": array_job, "task_id": array_task },
        "container": "",
        "container_id": "",
        "cpu": { "frequency": { "min": number(None), "max": number(None), "governor": number(None) } },
        "reserved_ports": "",
        "srun": { "host": "", "pid": 0 },
        "stdin": "",
        "stdout": "",
        "stderr": "",
        "stdin_expanded": "",
        "stdout_expanded": "",
        "stderr_expanded": "",
        "submit_line": "",
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
    json!({
        "hostname": host,
        "pinged": if is_up { "UP" } else { "DOWN" },
        "responding": is_up,
        "latency": micros,
        "mode": "primary",
        "primary": true,
    })
}
