//! Jobs and steps for programs, as `sacct` prints them (SL-A-11).

use super::Row;
use crate::{
    hostlist,
    show::{
        Clock,
        data::{Asker, counted, exit_code, joined, limit, number, seconds, tres},
        record::{ArrayTasks, JobRecord, MinMemory},
        step::StepRecord,
        tres::megabytes_of,
    },
};
use serde_json::{Value, json};

/// The document of jobs with their steps; in the rows, a step follows its job.
pub fn document(rows: &[Row], asker: &Asker<'_>, clock: &Clock) -> Value {
    let mut jobs: Vec<Value> = Vec::new();
    for row in rows {
        match (&row.step, jobs.last_mut().and_then(|job| job["steps"].as_array_mut())) {
            (Some(one), Some(steps)) => steps.push(step(row, one, clock)),
            (Some(_), None) => {}
            (None, _) => jobs.push(job(row, clock)),
        }
    }
    asker.document("jobs", jobs, &[])
}

fn job(row: &Row, clock: &Clock) -> Value {
    let job = &row.job;
    let request = job.request();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let account = text(&job.account);
    let own = json!({
        "job_id": job.number,
        "name": job.name,
        "account": account,
        "association": {
            "account": account, "cluster": row.cluster.as_ref(), "partition": "", "user": job.user,
            "id": row.association.unwrap_or(0)
        },
        "cluster": row.cluster.as_ref(),
        "partition": job.partition,
        "qos": job.qos(),
        "qosreq": text(&request.qos),
        "user": job.user,
        "group": job.person.group.as_ref(),
        "priority": number(u64::try_from(job.priority).ok()),
        "hold": job.is_held(),
        "flags": row.flags.iter().map(|flag| flag.in_data()).collect::<Vec<_>>(),
        "state": { "current": [row.state().long()], "reason": job.reason_word() },
        "exit_code": exit_code(job.exit),
        "derived_exit_code": exit_code(row.derived_exit),
        "kill_request_user": row.cancelled_by.map(|uid| uid.to_string()).unwrap_or_default(),
        "failed_node": text(&row.failed_node),
        "restart_cnt": job.restarts,
        "nodes": if job.nodes.is_empty() { "None assigned".to_owned() } else { job.node_list() },
        "allocation_nodes": if job.started.is_some() { job.node_count } else { 0 },
        "required": required(job),
        "tres": {
            "allocated": if job.started.is_some() { resources(job) } else { json!([]) },
            "requested": resources(job),
        },
        "time": time(row, clock),
        "het": {
            "job_id": job.het.as_ref().map_or(0, |het| het.leader),
            "job_offset": number(job.het.as_ref().map(|het| het.offset.into())),
        },
        "array": array(job),
    });
    let asked = json!({
        "comment": { "administrator": text(&request.admin_comment), "job": text(&request.comment), "system": "" },
        "extra": text(&request.extra),
        "constraints": text(&request.features),
        "container": text(&request.container),
        "licenses": text(&request.licences),
        "reservation": { "id": 0, "name": text(&job.reservation), "requested": text(&job.reservation) },
        "block": "",
        "mcs": { "label": "" },
        "script": "",
        "segment_size": 0,
        "used_gres": "",
        "stdin": request.stdin,
        "stdout": request.stdout,
        "stderr": request.stderr,
        "wckey": { "wckey": text(&request.wckey), "flags": [] },
        "submit_line": text(&request.submit_line),
        "working_directory": request.work_dir,
        "stdin_expanded": request.stdin,
        "stdout_expanded": request.stdout,
        "stderr_expanded": request.stderr,
        "steps": [],
    });
    joined([own, asked])
}

fn required(job: &JobRecord) -> Value {
    let (per_cpu, per_node) = match job.request().memory {
        Some(MinMemory::PerCpu(megabytes)) => (Some(megabytes), None),
        Some(MinMemory::PerNode(megabytes)) => (None, Some(megabytes)),
        None => (None, None),
    };
    json!({ "CPUs": job.cpus, "memory_per_cpu": number(per_cpu), "memory_per_node": number(per_node) })
}

fn resources(job: &JobRecord) -> Value {
    tres(job.cpus, megabytes_of(job), job.node_count.into(), job.gpus)
}

fn array(job: &JobRecord) -> Value {
    let (id, task, tasks) = match &job.array {
        None => (0, None, String::new()),
        Some(array) => match &array.tasks {
            ArrayTasks::One(index) => (array.number, Some(u64::from(*index)), String::new()),
            ArrayTasks::Waiting(indices) => (array.number, None, indices.to_string()),
        },
    };
    let most = job.array.as_ref().and_then(|array| array.most_running).unwrap_or(0);
    let limits = json!({ "max": { "running": { "tasks": most } } });
    json!({ "job_id": id, "limits": limits, "task_id": number(task), "task": tasks })
}

fn time(row: &Row, clock: &Clock) -> Value {
    let job = &row.job;
    json!({
        "elapsed": row.elapsed_seconds(clock),
        "eligible": seconds(job.eligible),
        "end": seconds(job.ended),
        "limit": limit(job.limit_seconds.map(|seconds| seconds.div_ceil(60))),
        "planned": number(Some(row.planned_seconds(clock))),
        "start": seconds(job.started),
        "submission": seconds(Some(job.submitted)),
        "suspended": job.suspended_seconds,
        "system": cpu_time(row.usage.system_time_micros),
        "total": cpu_time(row.usage.cpu_time_micros),
        "user": cpu_time(row.usage.user_time_micros()),
    })
}

fn cpu_time(micros: u64) -> Value {
    json!({ "seconds": micros / 1_000_000, "microseconds": micros % 1_000_000 })
}

fn step(row: &Row, step: &StepRecord, clock: &Clock) -> Value {
    json!({
        "step": {
            "id": row.shown_id(), "name": step.name,
            "stdin": "", "stdout": "", "stderr": "",
            "stdin_expanded": "", "stdout_expanded": "", "stderr_expanded": "",
        },
        "pid": "",
        "kill_request_user": row.cancelled_by.map(|uid| uid.to_string()).unwrap_or_default(),
        "CPU": { "requested_frequency": { "min": number(Some(0)), "max": number(Some(0)) }, "governor": [] },
        "statistics": { "CPU": { "actual_frequency": 0 }, "energy": { "consumed": number(Some(0)) } },
        "state": [row.state().long()],
        "exit_code": exit_code(step.exit),
        "nodes": {
            "count": step.nodes.len(), "range": hostlist::compress_sorted(&step.nodes), "list": step.nodes
        },
        "tasks": { "count": step.tasks },
        "task": { "distribution": step.distribution.layout() },
        "time": {
            "elapsed": row.elapsed_seconds(clock),
            "start": number(Some(seconds(step.started))),
            "end": number(Some(seconds(step.ended))),
            "limit": limit(step.limit_seconds.map(|seconds| seconds.div_ceil(60))),
            "suspended": 0,
            "system": cpu_time(row.usage.system_time_micros),
            "total": cpu_time(row.usage.cpu_time_micros),
            "user": cpu_time(row.usage.user_time_micros()),
        },
        "tres": {
            // What was used is called so there; what was written is not measured.
            "requested": { "max": [], "min": [], "average": used(row, step.tasks.max(1).into()), "total": used(row, 1) },
            "consumed": { "max": [], "min": [], "average": [], "total": [] },
            "allocated": counted(
                Some(step.cpus),
                None,
                Some(step.nodes.len() as u64),
                (step.gpus > 0).then_some(step.gpus),
            ),
        },
    })
}

/// The processor time in milliseconds and the memory in bytes that a line used, divided by its tasks.
fn used(row: &Row, tasks: u64) -> Value {
    json!([
        { "type": "cpu", "name": "", "id": 1, "count": row.usage.cpu_time_micros / 1_000 / tasks },
        { "type": "mem", "name": "", "id": 2, "count": row.usage.peak_memory_bytes / tasks },
    ])
}
