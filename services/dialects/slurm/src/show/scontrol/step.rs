//! `scontrol show step` (SL-C-34).

use super::{Lines, Record, limit, moment, or_null};
use crate::{
    hostlist,
    show::{Clock, step::StepRecord},
};

/// The record of a step.
pub fn step(step: &StepRecord, lines: Lines, clock: &Clock) -> String {
    let mut record = Record::new(lines);
    record
        .pair("StepId", step.shown_id())
        .pair("UserId", step.person.uid)
        .pair("StartTime", moment(step.started, "Unknown", clock))
        .pair("TimeLimit", limit(step.limit_seconds));
    record
        .line()
        .pair("State", step.state)
        .pair("Partition", &step.partition)
        .pair("NodeList", or_null(Some(&hostlist::compress_sorted(&step.nodes))));
    record
        .line()
        .pair("Nodes", step.nodes.len())
        .pair("CPUs", step.cpus)
        .pair("Tasks", step.tasks)
        .pair("Name", &step.name)
        .pair("Network", "(null)");
    record.line().pair("TRES", format_args!("cpu={},node={}", step.cpus, step.nodes.len()));
    record.line().pair("ResvPorts", "(null)");
    record.line().pair("CPUFreqReq", "Default").pair("Dist", step.distribution.layout());
    record.end()
}
