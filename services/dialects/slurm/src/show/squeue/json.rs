//! `--json`: jobs in a form for programs (SL-A-11, SL-C-27).

use crate::show::record::{ArrayTasks, JobRecord};
use serde_json::{Value, json};

/// Jobs as an object with `meta`, `jobs` and `errors`. `command` is the name of the command, `version` the program's.
pub fn json(command: &str, version: &str, records: &[JobRecord]) -> Value {
    let jobs: Vec<Value> = records.iter().map(job).collect();
    json!({
        "meta": { "plugin": { "type": "muster", "name": command }, "slurm": { "release": version } },
        "jobs": jobs,
        "errors": [],
    })
}

/// A job as an object, without steps, which the caller adds.
pub fn job(job: &JobRecord) -> Value {
    let request = job.request();
    let (array_id, array_task, array_tasks) = match &job.array {
        None => (0, Value::Null, String::new()),
        Some(array) => match &array.tasks {
            ArrayTasks::One(index) => (array.number, json!(index), String::new()),
            ArrayTasks::Waiting(indices) => (array.number, Value::Null, indices.to_string()),
        },
    };
    let seconds = |time: Option<muster_schemas::time::Timestamp>| time.map_or(0, |time| time.unix_seconds());
    json!({
        "job_id": job.number,
        "name": job.name,
        "account": job.account.as_deref().unwrap_or_default(),
        "partition": job.partition,
        "qos": job.qos(),
        "user": job.user,
        "user_id": job.person.uid,
        "group": job.person.group.as_ref(),
        "priority": job.priority,
        "state": { "current": job.state.long(), "reason": job.reason },
        "job_state": job.state.long(),
        "state_reason": job.reason,
        "exit_code": { "return_code": job.exit.status, "signal": job.exit.signal },
        "nodes": job.node_list(),
        "node_count": job.node_count,
        "cpus": job.cpus,
        "tasks": job.tasks,
        "submit_time": seconds(Some(job.submitted)),
        "eligible_time": seconds(job.eligible),
        "start_time": seconds(job.start()),
        "end_time": seconds(job.end()),
        "time_limit": job.limit_seconds.map(|seconds| seconds.div_ceil(60)),
        "time": {
            "submission": seconds(Some(job.submitted)),
            "eligible": seconds(job.eligible),
            "start": seconds(job.start()),
            "end": seconds(job.ended),
            "limit": job.limit_seconds.map(|seconds| seconds.div_ceil(60)),
            "suspended": job.suspended_seconds,
        },
        "het": {
            "job_id": job.het.as_ref().map_or(0, |het| het.leader),
            "job_offset": job.het.as_ref().map(|het| het.offset),
        },
        "het_job_id": job.het.as_ref().map_or(0, |het| het.leader),
        "het_job_id_set": job.het.as_ref().map_or("", |het| &het.set),
        "het_job_offset": job.het.as_ref().map_or(0, |het| het.offset),
        "array": { "job_id": array_id, "task_id": array_task, "task": array_tasks },
        "dependency": request.dependency.as_deref().unwrap_or_default(),
        "features": request.features.as_deref().unwrap_or_default(),
        "licenses": request.licences.as_deref().unwrap_or_default(),
        "comment": request.comment.as_deref().unwrap_or_default(),
        "command": request.command.as_deref().unwrap_or_default(),
        "current_working_directory": request.work_dir,
        "standard_output": request.stdout,
        "standard_error": request.stderr,
        "standard_input": request.stdin,
        "reservation": job.reservation.as_deref().unwrap_or_default(),
        "restart_cnt": job.restarts,
    })
}
