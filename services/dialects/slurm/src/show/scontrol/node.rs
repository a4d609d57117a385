//! `scontrol show node` (EX-21).

use super::{Lines, Record, moment, or_null};
use crate::show::{Clock, sinfo::NodeRecord, tres};
use muster_schemas::{node::load_text, time::Timestamp};

/// Facts about a node in addition to its record.
#[derive(Clone, Debug, Default)]
pub struct NodeExtras {
    /// The partitions that it serves, by name.
    pub partitions: Vec<String>,
    /// Its version of muster.
    pub version: String,
    /// When its machine started.
    pub booted: Option<Timestamp>,
    /// When its executor started.
    pub executor_started: Option<Timestamp>,
    /// When it last had a job.
    pub last_busy: Option<Timestamp>,
}

/// The record of a node.
pub fn node(node: &NodeRecord, extras: &NodeExtras, lines: Lines, clock: &Clock) -> String {
    let mut record = Record::new(lines);
    record.pair("NodeName", &node.name).pair("Arch", "x86_64").pair("CoresPerSocket", node.cores_per_socket());
    record
        .line()
        .pair("CPUAlloc", node.cpus_used)
        .pair("CPUEfctv", node.cpus)
        .pair("CPUTot", node.cpus)
        .pair("CPULoad", node.load_millionths.map_or_else(|| "N/A".to_owned(), load_text));
    record.line().pair("AvailableFeatures", or_null(Some(&node.features)));
    record.line().pair("ActiveFeatures", or_null(Some(&node.features)));
    record.line().pair("Gres", or_null(Some(&node.gres)));
    if !node.gres_drained.is_empty() {
        record.line().pair("GresDrain", &node.gres_drained);
    }
    record
        .line()
        .pair("NodeAddr", &node.name)
        .pair("NodeHostName", &node.name)
        .pair("Version", or_null(Some(&extras.version)));
    record.line().pair("OS", "Linux");
    record
        .line()
        .pair("RealMemory", node.megabytes)
        .pair("AllocMem", node.megabytes_used)
        .pair("FreeMem", node.megabytes.saturating_sub(node.megabytes_used))
        .pair("Sockets", node.sockets)
        .pair("Boards", 1);
    record
        .line()
        .pair("State", node.state.flags())
        .pair("ThreadsPerCore", 1)
        .pair("TmpDisk", node.tmp_disk_megabytes)
        .pair("Weight", node.weight)
        .pair("Owner", "N/A")
        .pair("MCS_label", "N/A");
    record.line().pair("Partitions", extras.partitions.join(","));
    record
        .line()
        .pair("BootTime", moment(extras.booted, "None", clock))
        .pair("SlurmdStartTime", moment(extras.executor_started, "None", clock));
    record.line().pair("LastBusyTime", moment(extras.last_busy, "Unknown", clock));
    let all = tres::of_node(node.cpus.into(), node.megabytes);
    record.line().pair("CfgTRES", format_args!("{all},billing={}{}", node.cpus, tres::gpus(node.gpus)));
    let used = match node.cpus_used {
        0 => String::new(),
        used => tres::of_node(used.into(), node.megabytes_used) + &tres::gpus(node.gpus_used),
    };
    record.line().pair("AllocTRES", used);
    if let Some(reason) = &node.reason {
        let who = node.reason_user.as_deref().unwrap_or("Unknown");
        record.line().pair("Reason", format_args!("{reason} [{who}@{}]", moment(node.reason_time, "Unknown", clock)));
    }
    record.end()
}
