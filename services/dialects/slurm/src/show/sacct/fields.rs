//! The columns of `sacct` (SL-A-08).

use super::Row;
use crate::{
    duration, hostlist,
    show::{
        Clock,
        cells::{long_limit, moment, put},
        columns::Field,
        sacctmgr::qos_id,
        tres,
    },
    size::Units,
    words::State,
};

macro_rules! field {
    ($name:literal, $width:literal, $write:expr) => {
        Field::wide(&[$name], $width, $write)
    };
}

/// The columns of jobs and steps.
pub static FIELDS: &[Field<Row>] = &[
    field!("Account", 10, |row, _, out| out.push_str(row.job.account.as_deref().unwrap_or_default())),
    field!("AdminComment", 19, |row, _, out| of_job(row, out, |out| {
        text(row.job.request().admin_comment.as_deref(), out);
    })),
    field!("AllocCPUS", 10, |row, _, out| put(row.cpus(), out)),
    field!("AllocNodes", 10, |row, _, out| put(allocated_nodes(row), out)),
    field!("AllocTRES", 10, |row, _, out| allocated_tres(row, out)),
    field!("AssocID", 7, |row, _, out| of_job(row, out, |out| row.association.iter().for_each(|id| put(id, out)))),
    field!("AveCPU", 10, |row, _, out| of_step(row, out, |out| cpu_time(row.usage.cpu_time_micros / tasks(row), out))),
    field!("AveCPUFreq", 10, nothing),
    field!("AveDiskRead", 14, nothing),
    field!("AveDiskWrite", 14, nothing),
    field!("AvePages", 10, nothing),
    field!("AveRSS", 10, |row, _, out| of_step(row, out, |out| average_memory(row, out))),
    field!("AveVMSize", 10, nothing),
    field!("BlockID", 16, nothing),
    field!("Cluster", 10, |row, _, out| out.push_str(&row.cluster)),
    field!("Comment", 14, |row, _, out| of_job(row, out, |out| text(row.job.request().comment.as_deref(), out))),
    field!("Constraints", 19, |row, _, out| of_job(row, out, |out| text(row.job.request().features.as_deref(), out))),
    field!("ConsumedEnergy", 14, nothing),
    field!("ConsumedEnergyRaw", 17, nothing),
    field!("Container", 19, |row, _, out| text(row.job.request().container.as_deref(), out)),
    field!("CPUTime", 10, |row, clock, out| out.push_str(&duration::long(cpu_seconds(row, clock)))),
    field!("CPUTimeRAW", 10, |row, clock, out| put(cpu_seconds(row, clock), out)),
    field!("DBIndex", 10, |row, _, out| put(row.job.number, out)),
    field!("DerivedExitCode", 15, |row, _, out| of_job(row, out, |out| put(row.derived_exit, out))),
    field!("Elapsed", 10, |row, clock, out| out.push_str(&duration::long(row.elapsed_seconds(clock)))),
    field!("ElapsedRaw", 10, |row, clock, out| put(row.elapsed_seconds(clock), out)),
    field!("Eligible", 19, |row, clock, out| moment(row.job.eligible, "Unknown", clock, out)),
    field!("End", 19, |row, clock, out| moment(row.ended(), "Unknown", clock, out)),
    field!("ExitCode", 8, |row, _, out| put(row.step.as_ref().map_or(row.job.exit, |step| step.exit), out)),
    field!("Extra", 19, |row, _, out| of_job(row, out, |out| text(row.job.request().extra.as_deref(), out))),
    field!("FailedNode", 20, |row, _, out| of_job(row, out, |out| text(row.failed_node.as_deref(), out))),
    field!("Flags", 20, |row, _, out| of_job(row, out, |out| {
        let words: Vec<&str> = row.flags.iter().map(|flag| flag.word()).collect();
        out.push_str(&words.join(","));
    })),
    field!("GID", 6, |row, _, out| of_job(row, out, |out| put(row.job.person.gid, out))),
    field!("Group", 9, |row, _, out| of_job(row, out, |out| out.push_str(&row.job.person.group))),
    field!("JobID", -12, |row, _, out| out.push_str(&row.shown_id())),
    field!("JobIDRaw", -12, |row, _, out| match &row.step {
        Some(step) => put(format_args!("{}.{}", row.job.number, step.step), out),
        None => put(row.job.number, out),
    }),
    field!("JobName", 10, |row, _, out| out.push_str(row.step.as_ref().map_or(&row.job.name, |step| &step.name))),
    field!("Layout", 9, |row, _, out| out.push_str(row.step.as_ref().map_or("", |step| step.distribution.layout()))),
    field!("Licenses", 10, |row, _, out| of_job(row, out, |out| text(row.job.request().licences.as_deref(), out))),
    field!("MaxDiskRead", 12, nothing),
    field!("MaxDiskReadNode", 15, nothing),
    field!("MaxDiskReadTask", 15, nothing),
    field!("MaxDiskWrite", 12, nothing),
    field!("MaxDiskWriteNode", 16, nothing),
    field!("MaxDiskWriteTask", 16, nothing),
    field!("MaxPages", 8, nothing),
    field!("MaxPagesNode", 12, nothing),
    field!("MaxPagesTask", 14, nothing),
    field!("MaxRSS", 10, |row, _, out| of_step(row, out, |out| memory(row.units, row.usage.peak_memory_bytes, out))),
    field!("MaxRSSNode", 10, nothing),
    field!("MaxRSSTask", 10, nothing),
    field!("MaxVMSize", 10, nothing),
    field!("MaxVMSizeNode", 14, nothing),
    field!("MaxVMSizeTask", 14, nothing),
    field!("McsLabel", 19, nothing),
    field!("MinCPU", 10, nothing),
    field!("MinCPUNode", 10, nothing),
    field!("MinCPUTask", 10, nothing),
    field!("NCPUS", 10, |row, _, out| put(row.cpus(), out)),
    field!("NNodes", 8, |row, _, out| put(row.step.as_ref().map_or(row.job.node_count, step_nodes), out)),
    field!("NodeList", 15, |row, _, out| out.push_str(&node_list(row))),
    field!("NTasks", 8, |row, _, out| {
        if let Some(step) = &row.step {
            put(step.tasks, out);
        }
    }),
    field!("Partition", 10, |row, _, out| of_job(row, out, |out| out.push_str(&row.job.partition))),
    field!("Planned", 10, |row, clock, out| of_job(row, out, |out| out
        .push_str(&duration::long(row.planned_seconds(clock))))),
    field!("PlannedCPU", 10, |row, clock, out| of_job(row, out, |out| {
        out.push_str(&duration::long(planned_cpu(row, clock)));
    })),
    field!("PlannedCPURAW", 13, |row, clock, out| of_job(row, out, |out| put(planned_cpu(row, clock), out))),
    field!("Priority", 10, |row, _, out| of_job(row, out, |out| put(row.job.priority, out))),
    field!("QOS", 10, |row, _, out| of_job(row, out, |out| out.push_str(row.job.qos()))),
    field!("QOSRAW", 10, |row, _, out| of_job(row, out, |out| put(qos_id(row.job.qos()), out))),
    field!("QOSREQ", 10, |row, _, out| of_job(row, out, |out| text(row.job.request().qos.as_deref(), out))),
    field!("Reason", 22, |row, _, out| of_job(row, out, |out| out.push_str(&row.job.reason))),
    field!("ReqCPUFreq", 10, nothing),
    field!("ReqCPUFreqGov", 13, nothing),
    field!("ReqCPUFreqMax", 13, nothing),
    field!("ReqCPUFreqMin", 13, nothing),
    field!("ReqCPUS", 8, |row, _, out| put(row.step.as_ref().map_or(row.job.cpus, |step| step.cpus), out)),
    field!("ReqMem", 10, |row, _, out| of_job(row, out, |out| {
        match tres::megabytes_of(&row.job) {
            Some(megabytes) => out.push_str(&row.units.show_megabytes(megabytes)),
            None => out.push('0'),
        }
    })),
    field!("ReqNodes", 8, |row, _, out| of_job(row, out, |out| put(row.job.request().min_nodes, out))),
    field!("ReqTRES", 10, |row, _, out| of_job(row, out, |out| out.push_str(&tres::of_job(&row.job, row.units)))),
    field!("Reservation", 20, |row, _, out| of_job(row, out, |out| text(row.job.reservation.as_deref(), out))),
    field!("ReservationId", 15, nothing),
    field!("Restarts", 8, |row, _, out| of_job(row, out, |out| put(row.job.restarts, out))),
    field!("Start", 19, |row, clock, out| moment(row.started(), "Unknown", clock, out)),
    field!("State", 10, state),
    field!("StdErr", 20, |row, _, out| of_job(row, out, |out| out.push_str(&row.job.request().stderr))),
    field!("StdIn", 20, |row, _, out| of_job(row, out, |out| out.push_str(&row.job.request().stdin))),
    field!("StdOut", 20, |row, _, out| of_job(row, out, |out| out.push_str(&row.job.request().stdout))),
    field!("Submit", 19, |row, clock, out| {
        let submitted = row.step.as_ref().and_then(|step| step.started).unwrap_or(row.job.submitted);
        moment(Some(submitted), "Unknown", clock, out);
    }),
    field!("SubmitLine", 20, |row, _, out| of_job(row, out, |out| text(row.job.request().submit_line.as_deref(), out))),
    field!("Suspended", 10, |row, _, out| out.push_str(&duration::long(row.job.suspended_seconds))),
    field!("SystemComment", 19, nothing),
    field!("SystemCPU", 10, |row, _, out| cpu_time(row.usage.system_time_micros, out)),
    field!("Timelimit", 10, |row, _, out| of_job(row, out, |out| long_limit(row.job.limit_seconds, out))),
    field!("TimelimitRaw", 12, |row, _, out| of_job(row, out, |out| match row.job.limit_seconds {
        Some(seconds) => put(seconds.div_ceil(60), out),
        None => out.push_str("UNLIMITED"),
    })),
    field!("TotalCPU", 10, |row, _, out| cpu_time(row.usage.cpu_time_micros, out)),
    field!("TRESUsageInAve", 14, |row, _, out| of_step(row, out, |out| {
        used(row, row.usage.cpu_time_micros / tasks(row), row.usage.peak_memory_bytes / tasks(row), out);
    })),
    field!("TRESUsageInMax", 14, nothing),
    field!("TRESUsageInMaxNode", 18, nothing),
    field!("TRESUsageInMaxTask", 18, nothing),
    field!("TRESUsageInMin", 14, nothing),
    field!("TRESUsageInMinNode", 18, nothing),
    field!("TRESUsageInMinTask", 18, nothing),
    field!("TRESUsageInTot", 14, |row, _, out| of_step(row, out, |out| {
        used(row, row.usage.cpu_time_micros, row.usage.peak_memory_bytes, out);
    })),
    field!("TRESUsageOutAve", 15, nothing),
    field!("TRESUsageOutMax", 15, nothing),
    field!("TRESUsageOutMaxNode", 19, nothing),
    field!("TRESUsageOutMaxTask", 19, nothing),
    field!("TRESUsageOutMin", 15, nothing),
    field!("TRESUsageOutMinNode", 19, nothing),
    field!("TRESUsageOutMinTask", 19, nothing),
    field!("TRESUsageOutTot", 15, nothing),
    field!("UID", 6, |row, _, out| of_job(row, out, |out| put(row.job.person.uid, out))),
    field!("User", 9, |row, _, out| of_job(row, out, |out| out.push_str(&row.job.user))),
    field!("UserCPU", 10, |row, _, out| cpu_time(row.usage.user_time_micros(), out)),
    field!("WCKey", 10, |row, _, out| of_job(row, out, |out| text(row.job.request().wckey.as_deref(), out))),
    field!("WCKeyID", 10, nothing),
    field!("WorkDir", 20, |row, _, out| of_job(row, out, |out| out.push_str(&row.job.request().work_dir))),
];

/// What this system does not measure stays empty, as in Slurm without the plugins for it.
fn nothing(_: &Row, _: &Clock, _: &mut String) {}

/// Writes a value that lines of steps leave empty (SL-A-06).
fn of_job(row: &Row, out: &mut String, write: impl FnOnce(&mut String)) {
    if row.step.is_none() {
        write(out);
    }
}

/// Writes a value that only lines of steps have.
fn of_step(row: &Row, out: &mut String, write: impl FnOnce(&mut String)) {
    if row.step.is_some() {
        write(out);
    }
}

fn text(text: Option<&str>, out: &mut String) {
    out.push_str(text.unwrap_or_default());
}

fn step_nodes(step: &crate::show::step::StepRecord) -> u32 {
    u32::try_from(step.nodes.len()).unwrap_or(u32::MAX)
}

fn allocated_nodes(row: &Row) -> u32 {
    match &row.step {
        Some(step) => step_nodes(step),
        None if row.job.started.is_none() => 0,
        None => row.job.node_count,
    }
}

fn allocated_tres(row: &Row, out: &mut String) {
    match &row.step {
        Some(step) => {
            put(format_args!("cpu={},node={}{}", step.cpus, step.nodes.len(), tres::gpus(step.gpus)), out);
        }
        None if row.job.started.is_some() => out.push_str(&tres::of_job(&row.job, row.units)),
        None => {}
    }
}

fn node_list(row: &Row) -> String {
    let nodes = row.step.as_ref().map_or(&row.job.nodes, |step| &step.nodes);
    if nodes.is_empty() { "None assigned".to_owned() } else { hostlist::compress_sorted(nodes) }
}

fn cpu_seconds(row: &Row, clock: &Clock) -> u64 {
    row.elapsed_seconds(clock).saturating_mul(row.cpus())
}

/// The number of tasks of a step; 1 for a job.
fn tasks(row: &Row) -> u64 {
    u64::from(row.step.as_ref().map_or(1, |step| step.tasks.max(1)))
}

/// Processor time as `[D-][HH:]MM:SS[.mmm]`, with fractions of a second below an hour.
fn cpu_time(micros: u64, out: &mut String) {
    let (seconds, millis) = (micros / 1_000_000, micros % 1_000_000 / 1_000);
    match seconds {
        0..3600 => put(format_args!("{:02}:{:02}.{millis:03}", seconds / 60, seconds % 60), out),
        _ => out.push_str(&duration::long(seconds)),
    }
}

/// How long a job waited, for each of its processors together, in seconds.
fn planned_cpu(row: &Row, clock: &Clock) -> u64 {
    row.planned_seconds(clock).saturating_mul(row.job.cpus)
}

/// What was used of processors and memory: `cpu=00:00:01,mem=1024K`.
fn used(row: &Row, cpu_micros: u64, bytes: u64, out: &mut String) {
    put(format_args!("cpu={},mem=", duration::long(cpu_micros / 1_000_000)), out);
    memory(row.units, bytes, out);
}

fn average_memory(row: &Row, out: &mut String) {
    memory(row.units, row.usage.peak_memory_bytes / tasks(row), out);
}

/// Memory is measured in bytes, and shown in kilobytes unless a unit is asked for.
fn memory(units: Units, bytes: u64, out: &mut String) {
    match (units, bytes / 1024) {
        (Units::Largest, 0) => out.push('0'),
        (Units::Largest, kilobytes) => put(format_args!("{kilobytes}K"), out),
        (units, _) => out.push_str(&units.show(bytes, 0)),
    }
}

/// `CANCELLED by <uid>` says who cancelled it (SL-A-06).
fn state(row: &Row, _: &Clock, out: &mut String) {
    let state = row.state();
    out.push_str(state.long());
    if let (State::Cancelled, None, Some(uid)) = (state, &row.step, row.cancelled_by) {
        put(format_args!(" by {uid}"), out);
    }
}
