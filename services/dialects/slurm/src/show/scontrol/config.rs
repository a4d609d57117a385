//! `scontrol show config` and `ping` (SL-C-33, SL-C-35).

use super::moment;
use crate::show::{
    Clock,
    cells::{NULL, put},
};
use std::collections::BTreeMap;

/// The width of names.
const NAME_WIDTH: usize = 23;

/// The settings that are always shown.
pub const SETTINGS: [&str; 34] = [
    "AccountingStorageEnforce",
    "AccountingStorageType",
    "BOOT_TIME",
    "ClusterName",
    "EnforcePartLimits",
    "FirstJobId",
    "JobRequeue",
    "JobSubmitPlugins",
    "KillWait",
    "Licenses",
    "MailProg",
    "MaxArraySize",
    "MaxJobCount",
    "MinJobAge",
    "NEXT_JOB_ID",
    "OverTimeLimit",
    "PreemptMode",
    "PreemptType",
    "PriorityType",
    "PrivateData",
    "PrologFlags",
    "ProctrackType",
    "SchedulerParameters",
    "SchedulerType",
    "SelectType",
    "SelectTypeParameters",
    "SlurmctldHost[0]",
    "SlurmctldParameters",
    "SlurmdUser",
    "SlurmUser",
    "SLURM_CONF",
    "SLURM_VERSION",
    "TaskPlugin",
    "TopologyPlugin",
];

/// The settings, `Name   = value`, below a line with the date: first those of [`SETTINGS`], `(null)` without a value,
/// then all others.
pub fn config(values: &BTreeMap<&str, String>, clock: &Clock) -> String {
    let mut out = format!("Configuration data as of {}\n", moment(Some(clock.now), "Unknown", clock));
    let others = values.keys().copied().filter(|name| !SETTINGS.contains(name));
    for name in SETTINGS.into_iter().chain(others) {
        let value = values.get(name).map_or(NULL, String::as_str);
        put(format_args!("{name:<NAME_WIDTH$} = {value}\n"), &mut out);
    }
    out.push('\n');
    out
}

/// `scontrol ping`: whether the controller on a host answers.
pub fn ping(host: &str, is_up: bool) -> String {
    let state = if is_up { "UP" } else { "DOWN" };
    format!("Slurmctld(primary) at {host} is {state}\n")
}
