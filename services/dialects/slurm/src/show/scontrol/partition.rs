//! `scontrol show partition`, `lic` and `res` (EX-21, SL-C-33).

use super::{Lines, Record, limit, moment, or_null};
use crate::{
    duration, hostlist,
    queries::reservation_flags::Flags,
    show::{
        Clock,
        data::partition_state,
        period,
        sinfo::{NodeRecord, Partition},
        tres,
    },
};
use muster_schemas::{
    plan::ReservedNodes,
    views::{LicenceView, ReservationView},
};

/// The record of a partition with this QOS; `nodes` are those of the cluster.
pub fn partition<'a>(
    partition: &Partition,
    class: Option<&str>,
    nodes: impl IntoIterator<Item = &'a NodeRecord>,
    lines: Lines,
) -> String {
    let spec = &partition.spec;
    let [least_nodes, most_nodes] = partition.nodes_asked();
    let most_nodes = most_nodes.map_or_else(|| "UNLIMITED".to_owned(), |most| most.to_string());
    let own: Vec<&NodeRecord> = nodes.into_iter().filter(|node| partition.has(node)).collect();
    let cpus: u64 = own.iter().map(|node| u64::from(node.cpus)).sum();
    let megabytes: u64 = own.iter().map(|node| node.megabytes).sum();
    let gpus: u64 = own.iter().map(|node| node.gpus).sum();
    let names: Vec<&str> = own.iter().map(|node| node.name.as_str()).collect();
    let mut record = Record::new(lines);
    record.pair("PartitionName", &partition.name);
    record.line().pair("AllowGroups", "ALL").pair("AllowAccounts", "ALL").pair("AllowQos", "ALL");
    let default_time = spec.default_walltime_seconds.map_or_else(|| "NONE".to_owned(), duration::long);
    record
        .line()
        .pair("AllocNodes", "ALL")
        .pair("Default", if partition.is_default { "YES" } else { "NO" })
        .pair("QoS", class.unwrap_or("N/A"));
    record
        .line()
        .pair("DefaultTime", default_time)
        .pair("DisableRootJobs", "NO")
        .pair("ExclusiveUser", "NO")
        .pair("GraceTime", spec.makes_way.map_or(0, |way| way.grace_seconds))
        .pair("Hidden", "NO");
    record
        .line()
        .pair("MaxNodes", most_nodes)
        .pair("MaxTime", limit(spec.max_walltime_seconds))
        .pair("MinNodes", least_nodes.unwrap_or(0))
        .pair("LLN", "NO")
        .pair("MaxCPUsPerNode", "UNLIMITED");
    record.line().pair("Nodes", or_null(Some(&hostlist::compress_sorted(&names))));
    record
        .line()
        .pair("PriorityJobFactor", 1)
        .pair("PriorityTier", spec.priority)
        .pair("RootOnly", if partition.is_root_only() { "YES" } else { "NO" })
        .pair("ReqResv", "NO")
        .pair("OverSubscribe", "NO");
    record.line().pair("OverTimeLimit", "NONE").pair("PreemptMode", partition.preempt_mode());
    record
        .line()
        .pair("State", partition_state(partition.available()))
        .pair("TotalCPUs", cpus)
        .pair("TotalNodes", own.len())
        .pair("SelectTypeParameters", "NONE");
    record.line().pair("JobDefaults", "(null)");
    record.line().pair("DefMemPerNode", "UNLIMITED").pair("MaxMemPerNode", "UNLIMITED");
    let (size, gpus) = (tres::of_node(cpus, megabytes), tres::gpus(gpus));
    record.line().pair("TRES", format_args!("{size},node={},billing={cpus}{gpus}", own.len()));
    record.end()
}

/// The records of licences.
pub fn licences(licences: &[LicenceView], lines: Lines) -> String {
    if licences.is_empty() {
        return "No licenses configured in Slurm.\n".to_owned();
    }
    let one = |licence: &LicenceView| {
        let mut record = Record::new(Lines::One);
        record.pair("LicenseName", &licence.name);
        record.text.push_str(if lines == Lines::One { " " } else { "\n    " });
        record
            .pair("Total", licence.total)
            .pair("Used", licence.used)
            .pair("Free", licence.total.saturating_sub(licence.used))
            .pair("Reserved", 0)
            .pair("Remote", "no");
        record.end()
    };
    licences.iter().map(one).collect()
}

/// The record of a reservation.
pub fn reservation(view: &ReservationView, cores: u64, lines: Lines, clock: &Clock) -> String {
    let spec = &view.spec;
    let seconds = u64::try_from(spec.end.micros_since(spec.start) / 1_000_000).unwrap_or(0);
    let (start, end) = period::of(spec, clock.now);
    let queue = match &spec.nodes {
        ReservedNodes::Count { queue, .. } => queue.as_deref(),
        ReservedNodes::Named(_) => None,
    };
    let list = |names: &[String]| or_null(Some(&names.join(","))).to_owned();
    let mut record = Record::new(lines);
    record
        .pair("ReservationName", &spec.name)
        .pair("StartTime", moment(Some(start), "Unknown", clock))
        .pair("EndTime", moment(Some(end), "Unknown", clock))
        .pair("Duration", duration::long(seconds));
    record
        .line()
        .pair("Nodes", or_null(Some(&hostlist::compress_sorted(&view.nodes))))
        .pair("NodeCnt", view.nodes.len())
        .pair("CoreCnt", cores)
        .pair("Features", "(null)")
        .pair("PartitionName", or_null(queue))
        .pair("Flags", Flags::of(spec).shown());
    record.line().pair("TRES", format_args!("cpu={cores}"));
    record
        .line()
        .pair("Users", list(&spec.users))
        .pair("Groups", "(null)")
        .pair("Accounts", list(&spec.accounts))
        .pair("Licenses", "(null)")
        .pair("State", if view.begun { "ACTIVE" } else { "INACTIVE" })
        .pair("BurstBuffer", "(null)")
        .pair("Watts", "n/a");
    record.line().pair("MaxStartDelay", "(null)");
    record.end()
}
