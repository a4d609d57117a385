//! The columns of `sinfo`, by letter and by name (SL-C-29).

use super::{
    Group, NodeRecord,
    group::{least, varies},
};
use crate::{
    duration, hostlist,
    show::{
        Clock,
        cells::{NULL, moment, or_null, put},
        columns::Field,
    },
};
use muster_schemas::node::load_text;

macro_rules! field {
    ($letter:literal, $names:expr, $header:literal, $write:expr) => {
        Field::new(Some($letter), $names, $header, $write)
    };
    ($names:expr, $header:literal, $write:expr) => {
        Field::new(None, $names, $header, $write)
    };
}

/// The columns of nodes and partitions.
pub static FIELDS: &[Field<Group>] = &[
    field!('a', &["available"], "AVAIL", |group, _, out| out.push_str(group.partition.available())),
    field!('A', &["nodeai"], "NODES(A/I)", |group, _, out| {
        let [busy, idle, ..] = group.node_counts();
        put(format_args!("{busy}/{idle}"), out);
    }),
    field!('b', &["features_act"], "ACTIVE_FEATURES", |group, _, out| features(group, out)),
    field!('B', &["maxcpuspernode"], "MAX_CPUS_PER_NODE", |_, _, out| out.push_str("UNLIMITED")),
    field!('c', &["cpus"], "CPUS", |group, _, out| size(group, |node| node.cpus.into(), out)),
    field!('C', &["cpusstate"], "CPUS(A/I/O/T)", cpus_by_state),
    field!('d', &["disk"], "TMP_DISK", |group, _, out| size(group, |node| node.tmp_disk_megabytes, out)),
    field!('D', &["nodes"], "NODES", |group, _, out| put(group.nodes.len(), out)),
    field!('e', &["freemem"], "FREE_MEM", |group, _, out| {
        size(group, |node| node.megabytes.saturating_sub(node.megabytes_used), out);
    }),
    field!('E', &["reason"], "REASON", |group, _, out| out.push_str(of_first(group, |node| &node.reason, "none"))),
    field!('f', &["features", "features_avail"], "AVAIL_FEATURES", |group, _, out| features(group, out)),
    field!('F', &["nodeaiot"], "NODES(A/I/O/T)", |group, _, out| {
        let [busy, idle, other, all] = group.node_counts();
        put(format_args!("{busy}/{idle}/{other}/{all}"), out);
    }),
    field!('g', &["groups"], "GROUPS", |group, _, out| match group.partition.spec.users.as_slice() {
        [] => out.push_str("all"),
        users => out.push_str(&users.join(",")),
    }),
    field!('G', &["gres"], "GRES", |group, _, out| {
        or_null(group.nodes.first().map(|node| node.gres.as_str()), out);
    }),
    field!('h', &["oversubscribe"], "OVERSUBSCRIBE", |_, _, out| out.push_str("NO")),
    field!('H', &["timestamp"], "TIMESTAMP", |group, clock, out| {
        moment(group.nodes.first().and_then(|node| node.reason_time), "Unknown", clock, out);
    }),
    field!('i', &["reservation"], "RESERVATION", |_, _, out| out.push_str("")),
    field!('I', &["priorityjobfactor"], "PRIO_JOB_FACTOR", |_, _, out| out.push('1')),
    field!('l', &["time"], "TIMELIMIT", |group, _, out| limit(group.partition.spec.max_walltime_seconds, out)),
    field!('L', &["defaulttime"], "DEFAULTTIME", |group, _, out| match group.partition.spec.default_walltime_seconds {
        Some(seconds) => limit(Some(seconds), out),
        None => out.push_str("n/a"),
    }),
    field!('m', &["memory"], "MEMORY", |group, _, out| size(group, |node| node.megabytes, out)),
    field!('M', &["preemptmode"], "PREEMPT_MODE", |group, _, out| out.push_str(group.partition.preempt_mode())),
    field!('n', &["nodehost"], "HOSTNAMES", |group, _, out| first_name(group, out)),
    field!('N', &["nodelist"], "NODELIST", |group, _, out| out.push_str(&node_list(group))),
    field!('o', &["nodeaddr"], "NODE_ADDR", |group, _, out| first_name(group, out)),
    field!('O', &["cpusload"], "CPU_LOAD", |group, _, out| loads(group, out)),
    field!('p', &["prioritytier"], "PRIO_TIER", |group, _, out| put(group.partition.spec.priority, out)),
    field!('P', &["partition"], "PARTITION", |group, _, out| out.push_str(&group.partition.starred())),
    field!('r', &["root"], "ROOT", |group, _, out| {
        out.push_str(if group.partition.is_root_only() { "yes" } else { "no" });
    }),
    field!('R', &["partitionname"], "PARTITION", |group, _, out| out.push_str(&group.partition.name)),
    field!('s', &["size"], "JOB_SIZE", |group, _, out| {
        let [least, most] = group.partition.nodes_asked();
        put(format_args!("{}-", least.unwrap_or(1).max(1)), out);
        match most {
            Some(most) => put(most, out),
            None => out.push_str("infinite"),
        }
    }),
    field!('S', &["allocnodes"], "ALLOCNODES", |_, _, out| out.push_str("all")),
    field!('t', &["statecompact"], "STATE", |group, _, out| {
        out.push_str(&group.state().map_or_else(|| "n/a".to_owned(), |state| state.short()));
    }),
    field!('T', &["statelong"], "STATE", |group, _, out| {
        out.push_str(&group.state().map_or_else(|| "n/a".to_owned(), |state| state.long()));
    }),
    field!('u', &["user"], "USER", |group, _, out| {
        out.push_str(of_first(group, |node| &node.reason_user, "Unknown"));
    }),
    field!('U', &["userlong"], "USER", |group, _, out| {
        out.push_str(of_first(group, |node| &node.reason_user, "Unknown"));
    }),
    field!('v', &["version"], "VERSION", |_, _, out| out.push_str("N/A")),
    field!('V', &["cluster"], "CLUSTER", |_, _, out| out.push_str("N/A")),
    field!('w', &["weight"], "WEIGHT", |group, _, out| size(group, |node| node.weight, out)),
    field!('X', &["sockets"], "SOCKETS", |group, _, out| size(group, |node| node.sockets.into(), out)),
    field!('Y', &["cores"], "CORES", |group, _, out| size(group, |node| node.cores_per_socket().into(), out)),
    field!('z', &["socketcorethread"], "S:C:T", |group, _, out| {
        size(group, |node| node.sockets.into(), out);
        out.push(':');
        size(group, |node| node.cores_per_socket().into(), out);
        out.push_str(":1");
    }),
    field!('Z', &["threads"], "THREADS", |_, _, out| out.push('1')),
    field!(&["allocmem"], "ALLOCMEM", |group, _, out| size(group, |node| node.megabytes_used, out)),
    field!(&["comment"], "COMMENT", null),
    field!(&["extra"], "EXTRA", null),
    field!(&["gresused"], "GRES_USED", |group, _, out| {
        or_null(group.nodes.first().map(|node| node.gres_used.as_str()), out);
    }),
    field!(&["port"], "PORT", |_, _, out| out.push_str("N/A")),
    field!(&["statecomplete"], "STATE", |group, _, out| match group.state() {
        Some(state) => out.push_str(&state.flags().to_lowercase()),
        None => out.push_str("n/a"),
    }),
];

fn null(_: &Group, _: &Clock, out: &mut String) {
    out.push_str(NULL);
}

fn of_first<'a>(group: &'a Group, value: impl Fn(&'a NodeRecord) -> &'a Option<String>, none: &'a str) -> &'a str {
    group.nodes.first().and_then(|node| value(node).as_deref()).unwrap_or(none)
}

fn features(group: &Group, out: &mut String) {
    or_null(group.nodes.first().map(|node| node.features.as_str()), out);
}

fn first_name(group: &Group, out: &mut String) {
    out.push_str(group.nodes.first().map_or("", |node| &node.name));
}

fn node_list(group: &Group) -> String {
    let names: Vec<&str> = group.nodes.iter().map(|node| node.name.as_str()).collect();
    hostlist::compress_sorted(&names)
}

/// A size of the nodes: the least, with a `+` if they differ.
fn size(group: &Group, size: impl Fn(&NodeRecord) -> u64 + Copy, out: &mut String) {
    put(least(group, size), out);
    if varies(group, size) {
        out.push('+');
    }
}

fn limit(seconds: Option<u64>, out: &mut String) {
    match seconds {
        Some(seconds) => out.push_str(&duration::short(seconds)),
        None => out.push_str("infinite"),
    }
}

fn cpus_by_state(group: &Group, _: &Clock, out: &mut String) {
    let mut sum = [0; 4];
    for node in &group.nodes {
        let counts = node.cpu_counts();
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let [used, idle, other, all] = sum;
    put(format_args!("{used}/{idle}/{other}/{all}"), out);
}

/// The least and the greatest load of the nodes whose load is known.
fn loads(group: &Group, out: &mut String) {
    let known = || group.nodes.iter().filter_map(|node| node.load_millionths);
    match (known().min().map(load_text), known().max().map(load_text)) {
        (Some(least), Some(greatest)) if least != greatest => put(format_args!("{least}-{greatest}"), out),
        (Some(load), _) => out.push_str(&load),
        (None, _) => out.push_str("N/A"),
    }
}
