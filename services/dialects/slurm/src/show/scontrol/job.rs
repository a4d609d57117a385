//! `scontrol show job` (SL-C-34, SL-I-11; lines as in EX-01).

use super::{Lines, Record, limit, moment, or_null};
use crate::{
    duration, hostlist,
    show::{
        Clock,
        record::{ArrayPlace, JobRecord, MinMemory, NodePart, write_tasks},
        tres,
    },
    size::{self, Units},
};

/// The record of a job, a component, a task or the rest of an array.
pub fn job(job: &JobRecord, lines: Lines, clock: &Clock) -> String {
    written(job, lines, clock, false)
}

/// The same with what it has on each node (`-d`).
pub fn job_in_detail(job: &JobRecord, lines: Lines, clock: &Clock) -> String {
    written(job, lines, clock, true)
}

fn written(job: &JobRecord, lines: Lines, clock: &Clock, is_detailed: bool) -> String {
    let mut record = Record::new(lines);
    identity(&mut record, job);
    standing(&mut record, job, clock);
    times(&mut record, job, clock);
    place(&mut record, job);
    size(&mut record, job, is_detailed);
    files(&mut record, job);
    record.end()
}

fn identity(record: &mut Record, job: &JobRecord) {
    let request = job.request();
    record.pair("JobId", job.number);
    if let Some(array) = &job.array {
        array_pairs(record, array);
    }
    if let Some(het) = &job.het {
        record.pair("HetJobId", het.leader).pair("HetJobOffset", het.offset);
    }
    record.pair("JobName", &job.name);
    if let Some(het) = &job.het {
        record.line().pair("HetJobIdSet", &het.set);
    }
    record
        .line()
        .pair("UserId", format_args!("{}({})", job.user, job.person.uid))
        .pair("GroupId", format_args!("{}({})", job.person.group, job.person.gid))
        .pair("MCS_label", "N/A");
    record
        .line()
        .pair("Priority", job.priority)
        .pair("Nice", request.nice)
        .pair("Account", or_null(job.account.as_deref()))
        .pair("QOS", job.qos());
    if let Some(wckey) = &request.wckey {
        record.pair("WCKey", wckey);
    }
}

fn array_pairs(record: &mut Record, array: &ArrayPlace) {
    let mut tasks = String::new();
    let shown = ArrayPlace { most_running: None, ..array.clone() };
    // Writing to a string never fails.
    let _ = write_tasks(&shown, &mut tasks);
    let tasks = tasks.trim_matches(['[', ']']);
    record.pair("ArrayJobId", array.number).pair("ArrayTaskId", tasks);
    if let Some(most) = array.most_running {
        record.pair("ArrayTaskThrottle", most);
    }
}

fn standing(record: &mut Record, job: &JobRecord, clock: &Clock) {
    let request = job.request();
    // Blanks inside a value would look like the start of the next pair.
    let reason = job.reason.replace(' ', "_");
    record
        .line()
        .pair("JobState", job.state)
        .pair("Reason", reason)
        .pair("Dependency", or_null(request.dependency.as_deref()));
    record
        .line()
        .pair("Requeue", u8::from(request.is_requeued))
        .pair("Restarts", job.restarts)
        .pair("BatchFlag", u8::from(request.is_batch))
        .pair("Reboot", u8::from(request.is_reboot))
        .pair("ExitCode", job.exit);
    record
        .line()
        .pair("RunTime", duration::long(job.used_seconds(clock)))
        .pair("TimeLimit", limit(job.limit_seconds))
        .pair("TimeMin", request.time_min_seconds.map_or_else(|| "N/A".to_owned(), duration::long));
}

fn times(record: &mut Record, job: &JobRecord, clock: &Clock) {
    let eligible = moment(job.eligible, "Unknown", clock);
    record.line().pair("SubmitTime", moment(Some(job.submitted), "Unknown", clock)).pair("EligibleTime", &eligible);
    record.line().pair("AccrueTime", &eligible);
    record
        .line()
        .pair("StartTime", moment(job.start(), "Unknown", clock))
        .pair("EndTime", moment(job.end(), "Unknown", clock))
        .pair("Deadline", moment(job.request().deadline, "N/A", clock));
    let evaluated = job.started.unwrap_or(if job.state.is_pending() { clock.now } else { job.submitted });
    record
        .line()
        .pair("SuspendTime", moment(job.suspended_since, "None", clock))
        .pair("SecsPreSuspend", job.suspended_since.map_or(0, |_| job.used_seconds(clock)))
        .pair("LastSchedEval", moment(Some(evaluated), "Unknown", clock))
        .pair("Scheduler", if job.het.is_some() { "Backfill" } else { "Main" });
}

fn place(record: &mut Record, job: &JobRecord) {
    let request = job.request();
    let host = or_null(request.submit_host.as_deref());
    let session = request.submit_session.as_deref().unwrap_or("0");
    record.line().pair("Partition", &job.partition).pair("AllocNode:Sid", format_args!("{host}:{session}"));
    record
        .line()
        .pair("ReqNodeList", or_null(Some(&hostlist::compress_sorted(&request.required_nodes))))
        .pair("ExcNodeList", or_null(Some(&hostlist::compress_sorted(&request.excluded_nodes))));
    record.line().pair("NodeList", or_null(Some(&job.node_list())));
    if let Some(host) = job.nodes.first() {
        record.line().pair("BatchHost", host);
    }
    if let Some(reservation) = &job.reservation {
        record.line().pair("Reservation", reservation);
    }
}

/// The system has no data about the layout of the hardware, so these values are constant (D-13).
fn size(record: &mut Record, job: &JobRecord, is_detailed: bool) {
    let request = job.request();
    let nodes = match request.max_nodes {
        most if job.state.is_pending() && most > job.node_count => format!("{}-{most}", job.node_count),
        _ => job.node_count.to_string(),
    };
    record
        .line()
        .pair("NumNodes", nodes)
        .pair("NumCPUs", job.cpus)
        .pair("NumTasks", job.tasks)
        .pair("CPUs/Task", request.cpus_per_task)
        .pair("ReqB:S:C:T", "0:0:*:*");
    record.line().pair("TRES", tres::of_job(job, Units::Largest));
    record
        .line()
        .pair("Socks/Node", "*")
        .pair("NtasksPerN:B:S:C", format_args!("{}:0:*:*", request.tasks_per_node))
        .pair("CoreSpec", "*");
    if is_detailed {
        on_each_node(record, job);
    }
    let least_cpus = request.cpus_per_task.saturating_mul(request.tasks_per_node.max(1));
    record.line().pair("MinCPUsNode", least_cpus.max(request.min_cpus));
    match request.memory {
        Some(memory @ MinMemory::PerCpu(_)) => record.pair("MinMemoryCPU", memory.text()),
        Some(memory @ MinMemory::PerNode(_)) => record.pair("MinMemoryNode", memory.text()),
        None => record.pair("MinMemoryNode", 0),
    };
    match request.tmp_megabytes {
        0 => record.pair("MinTmpDiskNode", 0),
        megabytes => record.pair("MinTmpDiskNode", size::show_megabytes(megabytes)),
    };
    record.line().pair("Features", or_null(request.features.as_deref())).pair("DelayBoot", "00:00:00");
    if let Some(on_each) = request.tres_per_node() {
        record.line().pair("TresPerNode", on_each);
    }
    record
        .line()
        .pair("OverSubscribe", request.oversubscribe)
        .pair("Contiguous", u8::from(request.is_contiguous))
        .pair("Licenses", or_null(request.licences.as_deref()))
        .pair("Network", or_null(request.network.as_deref()));
}

fn on_each_node(record: &mut Record, job: &JobRecord) {
    let gpus = |part: &NodePart| match part.gpus.is_empty() {
        true => String::new(),
        false => format!("gpu:{}(IDX:{})", part.gpus.len(), part.gpus),
    };
    let all: u64 = job.parts.iter().map(|part| part.gpus.len()).sum();
    record.line().pair("JOB_GRES", if all == 0 { "(null)".to_owned() } else { format!("gpu:{all}") });
    let indented = if record.lines == Lines::Several { "  Nodes" } else { "Nodes" };
    for part in &job.parts {
        record
            .line()
            .pair(indented, &part.node)
            .pair("CPU_IDs", &part.cores)
            .pair("Mem", part.megabytes)
            .pair("GRES", gpus(part));
    }
}

fn files(record: &mut Record, job: &JobRecord) {
    let request = job.request();
    if let Some(image) = &request.container {
        record.line().pair("Container", image);
    }
    record.line().pair("Command", or_null(request.command.as_deref()));
    record.line().pair("WorkDir", or_null(Some(&request.work_dir)));
    let texts = [("AdminComment", &request.admin_comment), ("Comment", &request.comment), ("Extra", &request.extra)];
    for (key, text) in texts.into_iter().filter_map(|(key, text)| Some((key, text.as_ref()?))) {
        record.line().pair(key, text);
    }
    if let Some(directives) = &request.burst_buffer {
        record.line().pair("BurstBuffer", directives);
    }
    let streams = [("StdErr", &request.stderr), ("StdIn", &request.stdin), ("StdOut", &request.stdout)];
    for (key, path) in streams.into_iter().filter(|_| request.has_files) {
        record.line().pair(key, or_null(Some(path)));
    }
    if let Some(few) = &request.switches {
        record.line().pair("Switches", format_args!("{}@{}", few.most, duration::long(few.wait_seconds)));
    }
    for (key, text) in request.tres.iter().filter(|(key, _)| *key != "TresPerNode") {
        record.line().pair(key, text);
    }
    if let (Some(occasions), Some(user)) = (&request.mail_type, request.mail_user.as_ref().or(Some(&job.user))) {
        record.line().pair("MailUser", user).pair("MailType", occasions);
    }
}
