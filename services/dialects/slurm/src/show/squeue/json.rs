//! Jobs for programs, as `squeue` and `scontrol show job` print them (SL-C-27).

use crate::{
    show::{
        data::{Asker, exit_code, joined, limit, moment, number},
        record::{ArrayTasks, JobRecord, MinMemory},
        tres,
    },
    size::Units,
    words::ExitCode,
};
use muster_schemas::time::Timestamp;
use serde_json::{Value, json};

/// The document of some jobs at a moment.
pub fn document(records: &[JobRecord], asker: &Asker<'_>, now: Timestamp) -> Value {
    let more = [("last_backfill", moment(None)), ("last_update", moment(Some(now)))];
    asker.document("jobs", records.iter().map(|record| job(record, asker.cluster)).collect(), &more)
}

fn job(job: &JobRecord, cluster: &str) -> Value {
    joined([standing(job), place(job, cluster), request(job), unknown(job)])
}

/// Whose job it is, and how it stands.
fn standing(job: &JobRecord) -> Value {
    json!({
        "job_id": job.number,
        "name": job.name,
        "account": job.account.as_deref().unwrap_or_default(),
        "partition": job.partition,
        "qos": job.qos(),
        "user_name": job.user,
        "user_id": job.person.uid,
        "group_name": job.person.group.as_ref(),
        "group_id": job.person.gid,
        "priority": number(u64::try_from(job.priority).ok()),
        "hold": job.is_held(),
        "job_state": [job.state.long()],
        "state_reason": job.reason_word(),
        "state_description": "",
        "exit_code": exit_code(job.exit),
        "restart_cnt": job.restarts,
        "submit_time": moment(Some(job.submitted)),
        "eligible_time": moment(job.eligible),
        "accrue_time": moment(job.eligible),
        "start_time": moment(job.start()),
        "end_time": moment(job.end()),
        "suspend_time": moment(job.suspended_since),
        "time_limit": limit(job.limit_seconds.map(|seconds| seconds.div_ceil(60))),
    })
}

/// What it has, and its place among others.
fn place(job: &JobRecord, cluster: &str) -> Value {
    let (array, task, tasks) = match &job.array {
        None => (0, None, String::new()),
        Some(array) => match &array.tasks {
            ArrayTasks::One(index) => (array.number, Some(u64::from(*index)), String::new()),
            ArrayTasks::Waiting(indices) => (array.number, None, indices.to_string()),
        },
    };
    let most = job.array.as_ref().and_then(|array| array.most_running).unwrap_or(0);
    let resources = tres::of_job(job, Units::Largest);
    json!({
        "cluster": cluster,
        "nodes": job.node_list(),
        "batch_host": job.nodes.first().map_or("", String::as_str),
        "scheduled_nodes": job.planned_nodes.join(","),
        "node_count": number(Some(job.node_count.into())),
        "cpus": number(Some(job.cpus)),
        "gres_detail": gres_detail(job),
        "flags": [],
        "shared": [],
        "job_resources": resources_of(job),
        "tasks": number(Some(job.tasks.into())),
        "tres_req_str": resources,
        "tres_alloc_str": if job.state.is_pending() { "" } else { resources.as_str() },
        "resv_name": job.reservation.as_deref().unwrap_or_default(),
        "array_job_id": number(Some(array)),
        "array_task_id": number(task),
        "array_task_string": tasks,
        "array_max_tasks": number(Some(most.into())),
        "het_job_id": number(Some(job.het.as_ref().map_or(0, |het| het.leader))),
        "het_job_id_set": job.het.as_ref().map_or("", |het| &het.set),
        "het_job_offset": number(job.het.as_ref().map(|het| het.offset.into())),
    })
}

/// The GPUs that it has on each node that gives it some.
fn gres_detail(job: &JobRecord) -> Vec<String> {
    let with_gpus = job.parts.iter().filter(|part| !part.gpus.is_empty());
    with_gpus.map(|part| format!("gpu:{}(IDX:{})", part.gpus.len(), part.gpus)).collect()
}

/// Its resources on its nodes, once it has them.
fn resources_of(job: &JobRecord) -> Value {
    let allocation: Vec<Value> = (0_u32..)
        .zip(&job.parts)
        .map(|(at, part)| {
            json!({
                "index": at,
                "name": part.node,
                "cpus": { "count": part.cores.len(), "used": part.cores.len() },
                "memory": { "used": 0, "allocated": part.megabytes },
                // Which cores a socket has is known of nodes, not of jobs.
                "sockets": [],
            })
        })
        .collect();
    json!({
        "select_type": ["CPU", "MEMORY"],
        "nodes": {
            "count": job.nodes.len(), "list": job.node_list(), "whole": false, "allocation": allocation,
            "select_type": ["AVAILABLE"],
        },
        "cpus": if job.nodes.is_empty() { 0 } else { job.cpus },
        "threads_per_core": number(None),
    })
}

/// What it asked for.
fn request(job: &JobRecord) -> Value {
    let request = job.request();
    let (per_cpu, per_node) = match request.memory {
        Some(MinMemory::PerCpu(megabytes)) => (Some(megabytes), None),
        Some(MinMemory::PerNode(megabytes)) => (None, Some(megabytes)),
        None => (None, None),
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let of_tres = |key: &str| {
        let found = request.tres.iter().find(|(known, _)| *known == key);
        found.map(|(_, text)| text.clone()).unwrap_or_default()
    };
    let asked = json!({
        "batch_flag": request.is_batch,
        "requeue": request.is_requeued,
        "reboot": request.is_reboot,
        "contiguous": request.is_contiguous,
        "nice": request.nice,
        "max_nodes": number(Some(request.max_nodes.into())),
        "cpus_per_task": number(Some(request.cpus_per_task.into())),
        "tasks_per_node": number(Some(request.tasks_per_node.into())),
        "minimum_cpus_per_node": number(Some(request.min_cpus.max(request.cpus_per_task).into())),
        "memory_per_cpu": number(per_cpu),
        "memory_per_node": number(per_node),
        "minimum_tmp_disk_per_node": number(Some(request.tmp_megabytes)),
        "time_minimum": number(Some(request.time_min_seconds.unwrap_or(0).div_ceil(60))),
        "deadline": moment(request.deadline),
        "dependency": text(&request.dependency),
        "features": text(&request.features),
        "licenses": text(&request.licences),
        "required_nodes": request.required_nodes.join(","),
        "excluded_nodes": request.excluded_nodes.join(","),
        "tres_per_node": text(&request.tres_per_node()),
        "tres_per_job": of_tres("TresPerJob"),
        "tres_per_socket": of_tres("TresPerSocket"),
        "tres_per_task": of_tres("TresPerTask"),
        "tres_bind": of_tres("TresBind"),
        "tres_freq": of_tres("TresFreq"),
        "cpus_per_tres": of_tres("CpusPerTres"),
        "memory_per_tres": of_tres("MemPerTres"),
        "container": text(&request.container),
        "network": text(&request.network),
        "burst_buffer": text(&request.burst_buffer),
        "comment": text(&request.comment),
        "admin_comment": text(&request.admin_comment),
        "extra": text(&request.extra),
        "wckey": text(&request.wckey),
        "command": text(&request.command),
        "current_working_directory": request.work_dir,
        "standard_output": request.stdout,
        "standard_error": request.stderr,
        "standard_input": request.stdin,
    });
    let more = json!({
        "stdout_expanded": request.stdout,
        "stderr_expanded": request.stderr,
        "stdin_expanded": request.stdin,
        "allocating_node": text(&request.submit_host),
        "mail_type": mail_flags(request.mail_type.as_deref()),
        "mail_user": text(&request.mail_user),
        "required_switches": request.switches.as_ref().map_or(0, |switches| switches.most),
        "maximum_switch_wait_time": request.switches.as_ref().map_or(0, |switches| switches.wait_seconds),
        "job_size_str": [],
        "licenses_allocated": if job.state.is_pending() { String::new() } else { text(&request.licences) },
        "max_cpus": number(Some(0)),
    });
    joined([asked, more])
}

/// The occasions for mail, each by itself.
fn mail_flags(list: Option<&str>) -> Vec<&'static str> {
    let words: Vec<String> = list.unwrap_or_default().split(',').map(str::to_ascii_uppercase).collect();
    let has = |word: &str| words.iter().any(|known| known == word || known == "ALL" && ALL_MAIL.contains(&word));
    MAIL.iter().filter(|(word, _)| has(word)).map(|(_, flag)| *flag).collect()
}

/// The words of `--mail-type` and the flags that they are.
const MAIL: [(&str, &str); 11] = [
    ("BEGIN", "BEGIN"),
    ("END", "END"),
    ("FAIL", "FAIL"),
    ("REQUEUE", "REQUEUE"),
    ("TIME_LIMIT", "TIME=100%"),
    ("TIME_LIMIT_90", "TIME=90%"),
    ("TIME_LIMIT_80", "TIME=80%"),
    ("TIME_LIMIT_50", "TIME=50%"),
    ("STAGE_OUT", "STAGE_OUT"),
    ("ARRAY_TASKS", "ARRAY_TASKS"),
    ("INVALID_DEPEND", "INVALID_DEPENDENCY"),
];

/// Those of `ALL`.
const ALL_MAIL: [&str; 6] = ["BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT", "INVALID_DEPEND"];

/// Fields that say nothing here, with the values that Slurm gives them then.
fn unknown(job: &JobRecord) -> Value {
    json!({
        "association_id": 0,
        "batch_features": "",
        "billable_tres": number(if job.state.is_pending() { None } else { Some(job.cpus) }),
        "burst_buffer_state": "",
        "cluster_features": "",
        "container_id": "",
        "core_spec": number(None),
        "thread_spec": number(None),
        "cores_per_socket": number(None),
        "cpu_frequency_minimum": number(None),
        "cpu_frequency_maximum": number(None),
        "cpu_frequency_governor": number(None),
        "cron": "",
        "delay_boot": number(Some(0)),
        "derived_exit_code": exit_code(ExitCode::default()),
        "failed_node": "",
        "federation_origin": "",
        "federation_siblings_active": "",
        "federation_siblings_viable": "",
        "last_sched_evaluation": number(None),
        "mcs_label": "",
        "tasks_per_core": number(None),
        "tasks_per_tres": number(None),
        "tasks_per_socket": number(None),
        "tasks_per_board": number(Some(0)),
        "prefer": "",
        "preempt_time": moment(None),
        "preemptable_time": moment(None),
        "pre_sus_time": moment(None),
        "priority_by_partition": [],
        "profile": ["NOT_SET"],
        "resize_time": moment(None),
        "segment_size": 0,
        "selinux_context": "",
        "sockets_per_board": 0,
        "sockets_per_node": number(None),
        "system_comment": "",
        "threads_per_core": number(None),
    })
}
