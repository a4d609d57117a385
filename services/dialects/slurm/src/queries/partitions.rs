//! Partitions that `scontrol` makes and changes, as queues of the model (SL-C-38).

use super::{
    Failure,
    nodes::partition_state,
    update::{Change, Update},
};
use crate::{duration::TimeLimit, hostlist};
use muster_schemas::cluster::{MakesWay, QueueSpec, QueueSpecChange, WayOut};
use std::collections::BTreeMap;

/// A partition as it will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionChange {
    /// Its queue.
    pub queue: QueueSpec,
    /// Whether it becomes the default one.
    pub is_default: bool,
    /// Its new QOS, empty for none; `None` leaves that as it is.
    pub class: Option<String>,
}

impl PartitionChange {
    /// The change of the queue, which names what differs.
    pub fn named(&self, before: Option<&QueueSpec>) -> QueueSpecChange {
        before.map_or_else(|| self.queue.clone().into(), |before| QueueSpecChange::between(before, &self.queue))
    }
}

/// The partition with this name as an update leaves it. `before` is its queue as it is, `None` for a new one;
/// `is_default` is whether it is the default partition; `is_node` knows the names of nodes, and `is_class` those of QOS.
///
/// # Errors
/// A value that does not fit its key, a node or a QOS that does not exist, or a key for something that queues do not have.
pub fn queue_change(
    update: &Update,
    name: &str,
    before: Option<&QueueSpec>,
    is_default: bool,
    is_node: impl Fn(&str) -> bool,
    is_class: impl Fn(&str) -> bool,
) -> Result<PartitionChange, Failure> {
    let queue = before.cloned().unwrap_or_else(|| QueueSpec { name: name.to_owned(), ..QueueSpec::default() });
    let mut change = PartitionChange { queue, is_default: false, class: None };
    if let Some(state) = partition_state(update)? {
        (change.queue.enabled, change.queue.started) = (state.is_enabled, state.is_started);
    }
    for pair in &update.pairs {
        if pair.change != Change::Set && pair.key != "Nodes" {
            return Err(not_here(pair.key, &pair.value));
        }
        match pair.key {
            "Default" => {
                change.is_default = yes_or_no(pair.key, &pair.value)?;
                // Jobs that name no partition always go to one.
                if is_default && !change.is_default {
                    return Err(not_here(pair.key, "NO as long as no other is the default one"));
                }
            }
            "Nodes" => {
                let known = before.map_or(&[][..], |before| &before.nodes);
                change.queue.nodes = nodes(&pair.value, pair.change, known, &is_node)?;
            }
            "QoS" => change.class = Some(class(&pair.value, &is_class)?),
            key => set(&mut change.queue, key, &pair.value)?,
        }
    }
    grace(update, &mut change.queue)?;
    Ok(change)
}

/// Sets what one key says of a queue.
fn set(queue: &mut QueueSpec, key: &str, value: &str) -> Result<(), Failure> {
    match key {
        // They are read together with others.
        "State" | "GraceTime" => {}
        "DefaultTime" if value.eq_ignore_ascii_case("none") => queue.default_walltime_seconds = None,
        "DefaultTime" => queue.default_walltime_seconds = limit(key, value)?,
        "MaxTime" => queue.max_walltime_seconds = limit(key, value)?,
        "MaxNodes" => put_count(&mut queue.most_asked, most(key, value)?),
        "MinNodes" => put_count(&mut queue.least_asked, most(key, value)?.filter(|least| *least > 1)),
        "PreemptMode" => queue.makes_way = makes_way(value, queue.makes_way)?,
        "PriorityTier" => queue.priority = value.parse().map_err(|_| invalid(key, value))?,
        "RootOnly" => match (yes_or_no(key, value)?, is_root_only(queue)) {
            (false, true) => queue.users = Vec::new(),
            (true, true) | (false, false) => {}
            (true, false) if queue.users.is_empty() => queue.users = vec![ROOT.to_owned()],
            // `NO` could not give them back.
            (true, false) => return Err(not_here(key, "YES with a list of other users")),
        },
        key if is_usual(key, value) => {}
        key => return Err(not_here(key, value)),
    }
    Ok(())
}

const ROOT: &str = "root";

/// Whether only root can submit to it, besides those who manage everybody's jobs.
pub fn is_root_only(queue: &QueueSpec) -> bool {
    matches!(queue.users.as_slice(), [user] if user == ROOT)
}

/// How running jobs make way for those of partitions with a higher priority; `None` if they do not.
fn makes_way(value: &str, before: Option<MakesWay>) -> Result<Option<MakesWay>, Failure> {
    let lower = value.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(',').map(str::trim).collect();
    let by = match words.as_slice() {
        ["off"] => return Ok(None),
        ["requeue"] => WayOut::Requeue,
        ["cancel"] => WayOut::Cancel,
        // In Slurm jobs take turns on CPUs by gangs; here a suspended job waits until they are given back.
        ["suspend"] | ["gang", "suspend"] | ["suspend", "gang"] => WayOut::Suspend,
        _ => return Err(not_here("PreemptMode", value)),
    };
    Ok(Some(MakesWay { by, ..before.unwrap_or_default() }))
}

fn grace(update: &Update, queue: &mut QueueSpec) -> Result<(), Failure> {
    let Some(value) = update.value("GraceTime") else { return Ok(()) };
    let seconds = value.parse().map_err(|_| invalid("GraceTime", value))?;
    match &mut queue.makes_way {
        Some(way) => way.grace_seconds = seconds,
        None if seconds == 0 => {}
        None => return Err(not_here("GraceTime", &format!("{value} without PreemptMode"))),
    }
    Ok(())
}

/// A class, in any of the ways to say none. One that does not exist would limit nothing.
fn class(value: &str, is_class: &impl Fn(&str) -> bool) -> Result<String, Failure> {
    if ["", "n/a", "none"].iter().any(|none| none.eq_ignore_ascii_case(value)) {
        return Ok(String::new());
    }
    let wrong = || Failure::plain("slurm_update error: Invalid qos specification");
    is_class(value).then(|| value.to_owned()).ok_or_else(wrong)
}

/// A time limit in seconds; `None` without one.
fn limit(key: &str, value: &str) -> Result<Option<u64>, Failure> {
    TimeLimit::parse(value).map(TimeLimit::seconds).ok_or_else(|| invalid(key, value))
}

/// A number; `None` for no limit.
fn most(key: &str, value: &str) -> Result<Option<u64>, Failure> {
    if ["unlimited", "infinite", "-1"].iter().any(|word| word.eq_ignore_ascii_case(value)) {
        return Ok(None);
    }
    value.parse::<u32>().map(|count| Some(count.into())).map_err(|_| invalid(key, value))
}

/// Limits how many nodes jobs ask for.
fn put_count(limits: &mut BTreeMap<String, u64>, count: Option<u64>) {
    match count {
        Some(count) => limits.insert(NODES.to_owned(), count),
        None => limits.remove(NODES),
    };
}

/// The word for nodes in the limits of queues.
pub(crate) const NODES: &str = "nodes";

fn yes_or_no(key: &str, value: &str) -> Result<bool, Failure> {
    match value.to_ascii_lowercase().as_str() {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(invalid(key, value)),
    }
}

/// The nodes of a partition; none in the model means all.
fn nodes(
    value: &str,
    change: Change,
    known: &[String],
    is_node: &impl Fn(&str) -> bool,
) -> Result<Vec<String>, Failure> {
    if value.eq_ignore_ascii_case("all") {
        return Ok(Vec::new());
    }
    let wrong = || Failure::plain("slurm_update error: Invalid node name specified");
    let names = hostlist::expand(value).map_err(|_| wrong())?;
    if names.is_empty() || !names.iter().all(|name| is_node(name)) {
        return Err(wrong());
    }
    let mut all: Vec<String> = match change {
        Change::Set => names,
        Change::Add => {
            let new = names.into_iter().filter(|name| !known.contains(name));
            known.iter().cloned().chain(new).collect()
        }
        Change::Subtract => known.iter().filter(|name| !names.contains(name)).cloned().collect(),
    };
    all.dedup();
    if all.is_empty() { Err(wrong()) } else { Ok(all) }
}

/// Whether a key has the value that holds for every partition anyway.
fn is_usual(key: &str, value: &str) -> bool {
    let usual: &[&str] = match key {
        "AllocNodes" | "AllowAccounts" | "AllowGroups" | "AllowQos" => &["all"],
        "Alternate" | "DenyAccounts" | "DenyQos" | "JobDefaults" | "TRESBillingWeights" => &["", "(null)", "none"],
        "CpuBind" | "SelectTypeParameters" => &["none"],
        "DefMemPerCPU" | "DefMemPerNode" | "MaxMemPerCPU" | "MaxMemPerNode" => &["unlimited", "0"],
        "MaxCPUsPerNode" | "MaxCPUsPerSocket" => &["unlimited"],
        "DisableRootJobs" | "ExclusiveUser" | "Hidden" | "LLN" | "OverSubscribe" | "PowerDownOnIdle" | "ReqResv" => {
            &["no"]
        }
        "OverTimeLimit" => &["none", "0"],
        "PriorityJobFactor" => &["1"],
        _ => &[],
    };
    usual.iter().any(|known| known.eq_ignore_ascii_case(value))
}

fn invalid(key: &str, value: &str) -> Failure {
    Failure { lines: vec![format!("Invalid {key} value: {value}"), "Request aborted".to_owned()], code: 1 }
}

fn not_here(key: &str, value: &str) -> Failure {
    Failure {
        lines: vec![
            format!("slurm_update error: partitions of muster cannot have {key}={value}; nothing was changed"),
            "Request aborted".to_owned(),
        ],
        code: 1,
    }
}
