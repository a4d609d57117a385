//! Nodes: what `pbsnodes` prints.

use super::{
    cells::{first, printable, word},
    status::{Kind, Status},
};
use crate::{
    flavour::Flavour,
    value::{Size, show_kilobytes},
};
use jiff::tz::TimeZone;
use muster_schemas::{
    node::load_text,
    resources::{IndexSet, PropertyValue},
    views::{NodeStateWord, NodeView},
};
use std::fmt::Write;

/// The cores of a job on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeJob {
    /// The job's identifier.
    pub id: String,
    /// Its cores there.
    pub cores: IndexSet,
    /// Whether it is suspended.
    pub is_suspended: bool,
    /// Whether the node serves no other job meanwhile.
    pub is_exclusive: bool,
}

/// The state of a node, in the words of the family.
pub fn node_state(view: &NodeView, jobs: &[NodeJob], flavour: Flavour) -> String {
    let mut words = Vec::new();
    match view.state {
        NodeStateWord::Lost if view.power.is_some() && flavour == Flavour::PbsPro => words.push("sleep"),
        NodeStateWord::Unknown if flavour == Flavour::PbsPro => words.extend(["state-unknown", "down"]),
        NodeStateWord::Unknown | NodeStateWord::Lost => words.push("down"),
        NodeStateWord::Drained if view.is_down => words.extend(["down", "offline"]),
        NodeStateWord::Drained => words.push("offline"),
        NodeStateWord::Up => {}
    }
    let is_full = view.cores_used >= view.spec.cores && view.cores_used > 0;
    match flavour {
        _ if jobs.iter().any(|job| job.is_exclusive) => words.push("job-exclusive"),
        Flavour::PbsPro if is_full => words.push("job-busy"),
        Flavour::Torque if is_full => words.push("job-exclusive"),
        _ => {}
    }
    if words.is_empty() { "free".to_owned() } else { words.join(",") }
}

/// Whether a state has a word that `-l` lists without being asked for others: the node is out of service.
pub fn marked(state: &str) -> bool {
    state.split(',').any(|word| matches!(word, "down" | "offline" | "state-unknown"))
}

/// The attributes of a node with its jobs.
pub fn of_node(view: &NodeView, jobs: &[NodeJob], flavour: Flavour) -> Status {
    match flavour {
        Flavour::PbsPro => of_vnode(view, jobs),
        Flavour::Torque => of_torque(view, jobs),
    }
}

fn of_vnode(view: &NodeView, jobs: &[NodeJob]) -> Status {
    let spec = &view.spec;
    let mut status = Status::new(Kind::Node, spec.name.clone());
    status.set("Mom", spec.name.clone());
    status.set("ntype", "PBS");
    status.set("state", node_state(view, jobs, Flavour::PbsPro));
    status.set("pcpus", spec.cores.to_string());
    status.set_if("resv", (!view.reservations.is_empty()).then(|| view.reservations.join(", ")));
    let cores = |job: &NodeJob| job.cores.iter().map(|core| (job.id.clone(), core)).collect::<Vec<_>>();
    status.set_jobs("jobs", jobs.iter().flat_map(cores).collect());
    let mut available = |name: &str, text: String| status.set_resource("resources_available", name, text);
    let is_named = |name: &str| spec.properties.contains_key(name);
    if !is_named("arch") {
        available("arch", "linux".to_owned());
    }
    if !is_named("host") {
        available("host", spec.name.clone());
    }
    available("mem", show_kilobytes(spec.memory_bytes));
    available("ncpus", spec.cores.to_string());
    if !spec.gpus.is_empty() {
        available("ngpus", spec.gpus.len().to_string());
    }
    for (name, value) in &spec.properties {
        available(name, property(value));
    }
    available("vnode", spec.name.clone());
    let mut assigned = |name: &str, text: String| status.set_resource("resources_assigned", name, text);
    assigned("mem", show_kilobytes(view.memory_used_bytes));
    assigned("ncpus", view.cores_used.to_string());
    if !spec.gpus.is_empty() {
        assigned("ngpus", view.gpus_used.to_string());
    }
    status.set("resv_enable", "True");
    status.set("sharing", "default_shared");
    status.set_if("comment", comment(view));
    status.set_time("last_state_change_time", view.taken_out);
    status
}

/// A property as the value of a resource.
pub(crate) fn property(value: &PropertyValue) -> String {
    match value {
        PropertyValue::Flag(true) => "True".to_owned(),
        PropertyValue::Flag(false) => "False".to_owned(),
        other => other.to_string(),
    }
}

fn of_torque(view: &NodeView, jobs: &[NodeJob]) -> Status {
    let spec = &view.spec;
    let mut status = Status::new(Kind::Node, spec.name.clone());
    let state = node_state(view, jobs, Flavour::Torque);
    status.set("state", state.clone());
    status.set("power_state", "Running");
    status.set("np", spec.cores.to_string());
    let flags = spec.properties.iter().filter(|(_, value)| **value == PropertyValue::Flag(true));
    let flags: Vec<&str> = flags.map(|(name, _)| name.as_str()).collect();
    status.set_if("properties", (!flags.is_empty()).then(|| flags.join(",")));
    status.set("ntype", "cluster");
    let one = |job: &NodeJob| format!("{}/{}", job.cores, job.id);
    status.set_if("jobs", (!jobs.is_empty()).then(|| jobs.iter().map(one).collect::<Vec<_>>().join(",")));
    if view.state == NodeStateWord::Up || view.state == NodeStateWord::Drained {
        let names: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
        let memory = show_kilobytes(spec.memory_bytes);
        let free = show_kilobytes(spec.memory_bytes.saturating_sub(view.memory_used_bytes));
        let word = if state == "free" { "free" } else { "busy" };
        let load = view.load.map(|load| format!("loadave={},", load_text(load.millionths))).unwrap_or_default();
        status.set(
            "status",
            format!(
                "opsys=linux,ncpus={},physmem={memory},totmem={memory},availmem={free},{load}jobs={},state={word}",
                spec.cores,
                names.join(" ")
            ),
        );
    }
    status.set_if("note", comment(view));
    if !spec.gpus.is_empty() {
        status.set("gpus", spec.gpus.len().to_string());
    }
    status
}

/// Why it is out of service, or which of its GPUs are.
fn comment(view: &NodeView) -> Option<String> {
    let reason = view.reason.clone().filter(|reason| !reason.is_empty());
    reason.or_else(|| view.gpu_faults_text())
}

/// All attributes of nodes, as `pbsnodes -a` prints them.
pub fn node_text(nodes: &[Status], zone: &TimeZone) -> String {
    let mut out = String::new();
    for node in nodes {
        let _ = writeln!(out, "{}", printable(&node.name));
        for attribute in &node.attributes {
            let resource = attribute.resource.as_ref().map(|resource| format!(".{resource}")).unwrap_or_default();
            let value = printable(&attribute.value.text(zone));
            let _ = writeln!(out, "     {}{resource} = {value}", attribute.name);
        }
        out.push('\n');
    }
    out
}

/// A line of `pbsnodes -l`: the name, the state, and the comment if it is wanted.
pub fn node_line(name: &str, state: &str, comment: Option<&str>, flavour: Flavour) -> String {
    let (name, state) = (word(name), word(state));
    match (comment.map(printable), flavour) {
        (comment, Flavour::PbsPro) => format!("{name:<20} {state} {}\n", comment.unwrap_or_default()),
        (Some(comment), Flavour::Torque) if !comment.is_empty() => {
            format!("{:<20} {:<26} {comment}\n", first(&name, 20), first(&state, 26))
        }
        (_, Flavour::Torque) => format!("{:<20} {state}\n", first(&name, 20)),
    }
}

/// The form of the table of `pbsnodes -S`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeTable<'a> {
    /// Whether the line has the free amounts beside all, and the jobs (`-j`).
    pub jobs: bool,
    /// Whether nothing is cut (`-L`).
    pub long: bool,
    /// One `NAME=VALUE` after the other with this delimiter (`-F dsv`).
    pub delimiter: Option<&'a str>,
}

const HEAD: &str = concat!(
    "vnode           state           OS       hardware host            queue        mem     ncpus   nmics   ngpus  comment\n",
    "--------------- --------------- -------- -------- --------------- ---------- -------- ------- ------- ------- ---------\n",
);
const HEAD_OF_JOBS: &str = concat!(
    "                                                        mem       ncpus   nmics   ngpus\n",
    "vnode           state           njobs   run   susp      f/t        f/t     f/t     f/t   jobs\n",
    "--------------- --------------- ------ ----- ------ ------------ ------- ------- ------- -------\n",
);

/// A column of the table: its name for `-F dsv`, its width, negative if it is filled up on the left, and its text. The
/// last one has no width.
type Column = (&'static str, i8, String);

/// A line for each node (`pbsnodes -S`).
pub fn node_table(nodes: &[(&NodeView, Vec<NodeJob>)], table: &NodeTable<'_>) -> String {
    let mut out = String::new();
    if table.delimiter.is_none() {
        out.push_str(if table.jobs { HEAD_OF_JOBS } else { HEAD });
    }
    for (view, jobs) in nodes {
        let columns = if table.jobs { with_jobs(view, jobs, table) } else { with_sizes(view, jobs, table) };
        let mut cells = Vec::new();
        for (name, width, text) in columns {
            let width_of = usize::from(width.unsigned_abs());
            let text = printable(&text);
            cells.push(match table.delimiter {
                Some(_) => format!("{name}={text}"),
                None if width == 0 => text,
                None => {
                    let text = word(&text);
                    let text = if table.long { &*text } else { first(&text, width_of) };
                    if width < 0 { format!("{text:>width_of$}") } else { format!("{text:<width_of$}") }
                }
            });
        }
        let _ = writeln!(out, "{}", cells.join(table.delimiter.unwrap_or(" ")));
    }
    out
}

fn state_cell(view: &NodeView, jobs: &[NodeJob], table: &NodeTable<'_>) -> String {
    let state = node_state(view, jobs, Flavour::PbsPro);
    if table.long { state } else { state.split(',').next().unwrap_or_default().to_owned() }
}

fn with_sizes(view: &NodeView, jobs: &[NodeJob], table: &NodeTable<'_>) -> Vec<Column> {
    let none = || "--".to_owned();
    vec![
        ("vnode", 15, view.spec.name.clone()),
        ("state", 15, state_cell(view, jobs, table)),
        ("OS", 8, none()),
        ("hardware", 8, none()),
        ("host", 15, view.spec.name.clone()),
        ("queue", 10, none()),
        ("mem", -8, short_size(view.spec.memory_bytes)),
        ("ncpus", -7, view.spec.cores.to_string()),
        ("nmics", -7, "0".to_owned()),
        ("ngpus", -7, view.spec.gpus.len().to_string()),
        ("comment", 0, comment(view).unwrap_or_else(none)),
    ]
}

fn with_jobs(view: &NodeView, jobs: &[NodeJob], table: &NodeTable<'_>) -> Vec<Column> {
    let spec = &view.spec;
    let suspended = jobs.iter().filter(|job| job.is_suspended).count();
    let gpus = spec.gpus.len();
    let memory = spec.memory_bytes.saturating_sub(view.memory_used_bytes);
    let is_short = table.delimiter.is_none();
    let name = |job: &NodeJob| match job.id.split_once('.') {
        Some((short, _)) if is_short => short.to_owned(),
        _ => job.id.clone(),
    };
    let names: Vec<String> = jobs.iter().map(name).collect();
    vec![
        ("vnode", 15, spec.name.clone()),
        ("state", 15, state_cell(view, jobs, table)),
        ("njobs", -6, jobs.len().to_string()),
        ("run", -5, (jobs.len() - suspended).to_string()),
        ("susp", -6, suspended.to_string()),
        ("mem(f/t)", -12, format!("{}/{}", short_size(memory), short_size(spec.memory_bytes))),
        ("ncpus(f/t)", -7, format!("{}/{}", spec.cores.saturating_sub(view.cores_used), spec.cores)),
        ("nmics(f/t)", -7, "0/0".to_owned()),
        ("ngpus(f/t)", -7, format!("{}/{gpus}", gpus.saturating_sub(view.gpus_used as usize))),
        ("jobs", 0, if names.is_empty() { "--".to_owned() } else { names.join(",") }),
    ]
}

/// An amount of memory with at most three digits.
fn short_size(bytes: u64) -> String {
    let units = ["b", "kb", "mb", "gb", "tb", "pb", "eb"];
    let (mut amount, mut unit) = (bytes, 0);
    while amount > 999 && unit + 1 < units.len() {
        amount = amount.div_ceil(1024);
        unit += 1;
    }
    format!("{amount}{}", units[unit])
}

/// Bytes as a size that means exactly as many.
pub(crate) fn exact_size(bytes: u64) -> String {
    let text = if bytes.is_multiple_of(1024) { format!("{}kb", bytes / 1024) } else { format!("{bytes}b") };
    debug_assert_eq!(Size::parse(&text).map(Size::bytes), Some(bytes));
    text
}
