//! The columns of `squeue`, by letter and by name (SL-C-24).

use crate::{
    duration,
    show::{
        cells::{NULL, moment, number, or_null, put, short_limit},
        columns::Field,
        record::{JobRecord, write_tasks},
    },
};

/// The divisor that turns a priority into a fraction.
const PRIORITY_SCALE: f64 = 4_294_967_296.0;

/// A column with a letter and names.
macro_rules! field {
    ($letter:literal, $names:expr, $header:literal, $write:expr) => {
        Field::<JobRecord>::new(Some($letter), $names, $header, $write)
    };
    ($names:expr, $header:literal, $write:expr) => {
        Field::<JobRecord>::new(None, $names, $header, $write)
    };
}

/// The same, for values that only details have.
macro_rules! detail {
    ($($part:tt)*) => {
        field!($($part)*).detailed()
    };
}

/// The columns of jobs.
pub static FIELDS: &[Field<JobRecord>] = &[
    field!('a', &["account"], "ACCOUNT", |job, _, out| or_null(job.account.as_deref(), out)),
    field!('A', &["jobid"], "JOBID", |job, _, out| number(job.number, out)),
    field!('B', &["batchhost"], "EXEC_HOST", |job, _, out| out.push_str(job.nodes.first().map_or("n/a", |name| name))),
    detail!('c', &["mincpus"], "MIN_CPUS", |job, _, out| put(
        job.request().cpus_per_task.max(job.request().min_cpus),
        out
    )),
    field!('C', &["numcpus"], "CPUS", |job, _, out| number(job.cpus, out)),
    detail!('d', &["mintmpdisk"], "MIN_TMP_DISK", |job, _, out| put(job.request().tmp_megabytes, out)),
    field!('D', &["numnodes"], "NODES", |job, _, out| number(job.node_count, out)),
    field!('e', &["endtime"], "END_TIME", |job, clock, out| moment(job.end(), "N/A", clock, out)),
    detail!('E', &["dependency"], "DEPENDENCY", |job, _, out| or_null(job.request().dependency.as_deref(), out)),
    detail!('f', &["feature"], "FEATURES", |job, _, out| or_null(job.request().features.as_deref(), out)),
    field!('F', &["arrayjobid"], "ARRAY_JOB_ID", |job, _, out| put(job.array_number(), out)),
    field!('g', &["groupname"], "GROUP", |job, _, out| out.push_str(&job.person.group)),
    field!('G', &["groupid"], "GROUP", |job, _, out| put(job.person.gid, out)),
    detail!('h', &["oversubscribe", "shared"], "OVER_SUBSCRIBE", |job, _, out| {
        out.push_str(job.request().oversubscribe);
    }),
    field!('H', &["sockets"], "SOCKETS_PER_NODE", |_, _, out| out.push('*')),
    field!('i', &["jobarrayid"], "JOBID", |job, _, out| match (&job.array, &job.het) {
        (None, None) => number(job.number, out),
        _ => put(job.shown_id(), out),
    }),
    field!('I', &["cores"], "CORES_PER_SOCKET", |_, _, out| out.push('*')),
    field!('j', &["name"], "NAME", |job, _, out| out.push_str(&job.name)),
    field!('J', &["threads"], "THREADS_PER_CORE", |_, _, out| out.push('*')),
    detail!('k', &["comment"], "COMMENT", |job, _, out| or_null(job.request().comment.as_deref(), out)),
    field!('K', &["arraytaskid"], "ARRAY_TASK_ID", array_task),
    field!('l', &["timelimit"], "TIME_LIMIT", |job, _, out| short_limit(job.limit_seconds, out)),
    field!('L', &["timeleft"], "TIME_LEFT", |job, clock, out| match job.left_seconds(clock).map(u64::try_from) {
        Some(Err(_)) => out.push_str("INVALID"),
        Some(Ok(left)) => short_limit(Some(left), out),
        None => short_limit(None, out),
    }),
    detail!('m', &["minmemory"], "MIN_MEMORY", |job, _, out| match job.request().memory {
        Some(memory) => out.push_str(&memory.text()),
        None => out.push('0'),
    }),
    field!('M', &["timeused", "time"], "TIME", |job, clock, out| match job.used_seconds(clock) {
        0 => out.push_str("0:00"),
        seconds => out.push_str(&duration::short(seconds)),
    }),
    detail!('n', &["reqnodes"], "REQ_NODES", |job, _, out| {
        out.push_str(&crate::hostlist::compress_sorted(&job.request().required_nodes));
    }),
    field!('N', &["nodelist"], "NODELIST", |job, _, out| out.push_str(&job.node_list())),
    detail!('o', &["command"], "COMMAND", |job, _, out| or_null(job.request().command.as_deref(), out)),
    detail!('O', &["contiguous"], "CONTIGUOUS", |job, _, out| put(u8::from(job.request().is_contiguous), out)),
    field!('p', &["priority"], "PRIORITY", |job, _, out| {
        put(format_args!("{:.14}", job.priority as f64 / PRIORITY_SCALE), out);
    }),
    field!('P', &["partition"], "PARTITION", |job, _, out| out.push_str(&job.partition)),
    detail!('q', &["qos"], "QOS", |job, _, out| out.push_str(job.qos())),
    field!('Q', &["prioritylong"], "PRIORITY", |job, _, out| put(job.priority, out)),
    field!('r', &["reason"], "REASON", |job, _, out| out.push_str(job.reason_word())),
    field!('R', &["reasonlist"], "NODELIST(REASON)", nodes_or_reason),
    field!('s', &["selectjobinfo"], "SELECT_JOBINFO", nothing),
    field!('S', &["starttime"], "START_TIME", |job, clock, out| moment(job.start(), "N/A", clock, out)),
    field!('t', &["statecompact"], "ST", |job, _, out| out.push_str(job.state.short())),
    field!('T', &["state"], "STATE", |job, _, out| out.push_str(job.state.long())),
    field!('u', &["username"], "USER", |job, _, out| out.push_str(&job.user)),
    field!('U', &["userid"], "UID", |job, _, out| put(job.person.uid, out)),
    field!('v', &["reservation"], "RESERVATION", |job, _, out| or_null(job.reservation.as_deref(), out)),
    field!('V', &["submittime"], "SUBMIT_TIME", |job, clock, out| moment(Some(job.submitted), "N/A", clock, out)),
    detail!('w', &["wckey"], "WCKEY", |job, _, out| or_null(job.request().wckey.as_deref(), out)),
    detail!('W', &["licenses"], "LICENSES", |job, _, out| or_null(job.request().licences.as_deref(), out)),
    detail!('x', &["exc_nodes"], "EXC_NODES", |job, _, out| {
        out.push_str(&crate::hostlist::compress_sorted(&job.request().excluded_nodes));
    }),
    field!('X', &["corespec"], "CORE_SPEC", not_available),
    detail!('y', &["nice"], "NICE", |job, _, out| put(job.request().nice, out)),
    field!('Y', &["schednodes"], "SCHEDNODES", |job, _, out| {
        or_null(Some(&crate::hostlist::compress_sorted(&job.planned_nodes)), out);
    }),
    field!('z', &["sct"], "S:C:T", |_, _, out| out.push_str("*:*:*")),
    detail!('Z', &["workdir"], "WORK_DIR", |job, _, out| out.push_str(&job.request().work_dir)),
    detail!('b', &["tres-per-node", "gres"], "TRES_PER_NODE", |job, _, out| {
        out.push_str(job.request().tres_per_node().as_deref().unwrap_or("N/A"));
    }),
    field!(&["accruetime"], "ACCRUE_TIME", |job, clock, out| moment(job.eligible, "N/A", clock, out)),
    detail!(&["admin_comment"], "ADMIN_COMMENT", |job, _, out| {
        or_null(job.request().admin_comment.as_deref(), out);
    }),
    detail!(&["allocnodes"], "ALLOC_NODES", |job, _, out| or_null(job.request().submit_host.as_deref(), out)),
    detail!(&["allocsid"], "ALLOC_SID", |job, _, out| {
        out.push_str(job.request().submit_session.as_deref().unwrap_or("0"));
    }),
    field!(&["associd"], "ASSOC_ID", |_, _, out| out.push('0')),
    detail!(&["batchflag"], "BATCH_FLAG", |job, _, out| put(u8::from(job.request().is_batch), out)),
    field!(&["boardspernode"], "BOARDS_PER_NODE", not_available),
    detail!(&["burstbuffer"], "BURST_BUFFER", |job, _, out| or_null(job.request().burst_buffer.as_deref(), out)),
    field!(&["burstbufferstate"], "BURST_BUFFER_STATE", null),
    field!(&["cluster"], "CLUSTER", not_available),
    field!(&["clusterfeature"], "CLUSTER_FEATURES", null),
    detail!(&["container"], "CONTAINER", |job, _, out| {
        out.push_str(job.request().container.as_deref().unwrap_or_default());
    }),
    field!(&["cpufreq"], "CPU_FREQ", not_available),
    detail!(&["cpus-per-task", "cpuspertask"], "CPUS_PER_TASK", |job, _, out| put(job.request().cpus_per_task, out)),
    field!(&["cpus-per-tres"], "CPUS_PER_TRES", not_available),
    detail!(&["deadline"], "DEADLINE", |job, clock, out| moment(job.request().deadline, "N/A", clock, out)),
    field!(&["delayboot"], "DELAY_BOOT", |_, _, out| out.push_str("0:00")),
    field!(&["derivedec"], "DERIVED_EC", |job, _, out| put(job.exit.status, out)),
    field!(&["eligibletime"], "ELIGIBLE_TIME", |job, clock, out| moment(job.eligible, "N/A", clock, out)),
    field!(&["exit_code"], "EXIT_CODE", |job, _, out| put(job.exit.status, out)),
    field!(&["hetjobid", "packjobid"], "HET_JOB_ID", |job, _, out| match &job.het {
        Some(het) => put(het.leader, out),
        None => out.push_str("N/A"),
    }),
    field!(&["hetjoboffset", "packjoboffset"], "HET_JOB_OFFSET", |job, _, out| match &job.het {
        Some(het) => put(het.offset, out),
        None => out.push_str("N/A"),
    }),
    field!(&["hetjobidset", "packjobidset"], "HET_JOB_ID_SET", |job, _, out| match &job.het {
        Some(het) => out.push_str(&het.set),
        None => out.push_str("N/A"),
    }),
    field!(&["lastschedeval"], "LAST_SCHED_EVAL", |job, clock, out| moment(Some(job.submitted), "N/A", clock, out)),
    field!(&["maxcpus"], "MAX_CPUS", |_, _, out| out.push('0')),
    detail!(&["maxnodes"], "MAX_NODES", |job, _, out| put(job.request().max_nodes, out)),
    field!(&["mcslabel"], "MCSLABEL", not_available),
    field!(&["mem-per-tres"], "MEM_PER_TRES", not_available),
    detail!(&["mintime"], "MIN_TIME", |job, _, out| match job.request().time_min_seconds {
        Some(seconds) => short_limit(Some(seconds), out),
        None => out.push_str("N/A"),
    }),
    detail!(&["network"], "NETWORK", |job, _, out| or_null(job.request().network.as_deref(), out)),
    field!(&["ntpercore"], "NTASKS_PER_CORE", not_available),
    field!(&["ntperboard"], "NTASKS_PER_BOARD", |_, _, out| out.push('0')),
    detail!(&["ntpernode"], "NTASKS_PER_NODE", |job, _, out| put(job.request().tasks_per_node, out)),
    field!(&["ntpersocket"], "NTASKS_PER_SOCKET", not_available),
    field!(&["numtasks", "numtask"], "TASKS", |job, _, out| number(job.tasks, out)),
    field!(&["origin"], "ORIGIN", not_available),
    field!(&["originraw"], "ORIGIN_RAW", not_available),
    field!(&["pendingtime"], "PENDING_TIME", |job, clock, out| {
        let until = job.started.unwrap_or(clock.now);
        put(until.micros_since(job.submitted).max(0) / 1_000_000, out);
    }),
    field!(&["preempttime"], "PREEMPT_TIME", not_available),
    field!(&["profile"], "PROFILE", not_available),
    detail!(&["reboot"], "REBOOT", |job, _, out| put(u8::from(job.request().is_reboot), out)),
    detail!(&["reqswitch"], "REQ_SWITCH", |job, _, out| {
        put(job.request().switches.as_ref().map_or(0, |few| few.most), out);
    }),
    detail!(&["requeue"], "REQUEUE", |job, _, out| put(u8::from(job.request().is_requeued), out)),
    field!(&["resizetime"], "RESIZE_TIME", not_available),
    field!(&["restartcnt"], "RESTART_COUNT", |job, _, out| put(job.restarts, out)),
    field!(&["siblingsactive"], "ACTIVE_SIBLINGS", not_available),
    field!(&["siblingsactiveraw"], "ACTIVE_SIBLINGS_RAW", not_available),
    field!(&["siblingsviable"], "VIABLE_SIBLINGS", not_available),
    field!(&["siblingsviableraw"], "VIABLE_SIBLINGS_RAW", not_available),
    field!(&["sperboard"], "SOCKETS_PER_BOARD", |_, _, out| out.push('0')),
    detail!(&["stderr"], "STDERR", |job, _, out| out.push_str(&job.request().stderr)),
    detail!(&["stdin"], "STDIN", |job, _, out| out.push_str(&job.request().stdin)),
    detail!(&["stdout"], "STDOUT", |job, _, out| out.push_str(&job.request().stdout)),
    field!(&["system_comment"], "SYSTEM_COMMENT", null),
    detail!(&["tres-alloc", "tres"], "TRES_ALLOC", |job, _, out| {
        out.push_str(&crate::show::tres::of_job(job, crate::size::Units::Largest));
    }),
    field!(&["tres-bind"], "TRES_BIND", not_available),
    field!(&["tres-freq"], "TRES_FREQ", not_available),
    field!(&["tres-per-job"], "TRES_PER_JOB", not_available),
    field!(&["tres-per-socket"], "TRES_PER_SOCKET", not_available),
    field!(&["tres-per-task"], "TRES_PER_TASK", not_available),
    detail!(&["wait4switch"], "TIME_WAIT", |job, _, out| {
        put(job.request().switches.as_ref().map_or(0, |few| few.wait_seconds), out);
    }),
];

/// Values about sizes and places that this system does not know are constant (D-13).
fn not_available(_: &JobRecord, _: &crate::show::Clock, out: &mut String) {
    out.push_str("N/A");
}

fn null(_: &JobRecord, _: &crate::show::Clock, out: &mut String) {
    out.push_str(NULL);
}

fn nothing(_: &JobRecord, _: &crate::show::Clock, _: &mut String) {}

fn array_task(job: &JobRecord, _: &crate::show::Clock, out: &mut String) {
    match &job.array {
        // Writing to a string never fails.
        Some(array) => drop(write_tasks(array, out)),
        None => out.push_str("N/A"),
    }
}

/// The nodes of a job, or in brackets why it has none or why it failed (SL-C-27).
fn nodes_or_reason(job: &JobRecord, _: &crate::show::Clock, out: &mut String) {
    if job.state.shows_reason() {
        out.push('(');
        out.push_str(&job.reason);
        out.push(')');
    } else {
        out.push_str(&job.node_list());
    }
}
