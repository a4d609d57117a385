//! Partitions that `scontrol` makes and changes, as queues of the model (SL-C-38).

use super::{
    Failure,
    nodes::partition_state,
    update::{Change, Update},
};
use crate::{duration::TimeLimit, hostlist};
use muster_schemas::cluster::{QueueSpec, QueueSpecChange};

/// The change of the queue with this name, and whether it becomes the default one. `before` is the queue as it is;
/// `None` makes a new one. `is_node` knows the names of nodes.
///
/// # Errors
/// A value that does not fit its key, a node that does not exist, or a key for something that queues do not have.
pub fn queue_change(
    update: &Update,
    name: &str,
    before: Option<&QueueSpec>,
    is_node: impl Fn(&str) -> bool,
) -> Result<(QueueSpecChange, bool), Failure> {
    let mut change = QueueSpecChange { name: name.to_owned(), ..QueueSpecChange::default() };
    let mut is_default = false;
    if let Some(state) = partition_state(update)? {
        (change.enabled, change.started) = (Some(state.is_enabled), Some(state.is_started));
    }
    for pair in &update.pairs {
        let value = pair.value.as_str();
        if pair.change != Change::Set && pair.key != "Nodes" {
            return Err(not_here(pair.key, value));
        }
        match pair.key {
            "State" => {}
            "Default" => is_default = yes_or_no(pair.key, value)?,
            "DefaultTime" => change.default_walltime_seconds = Some(limit(pair.key, value)?),
            "MaxTime" => change.max_walltime_seconds = Some(limit(pair.key, value)?),
            "Nodes" => {
                let known = before.map_or(&[][..], |before| &before.nodes);
                change.nodes = Some(nodes(value, pair.change, known, &is_node)?);
            }
            "PriorityTier" => change.priority = Some(value.parse().map_err(|_| invalid(pair.key, value))?),
            key if is_usual(key, value) => {}
            key => return Err(not_here(key, value)),
        }
    }
    Ok((change, is_default))
}

/// A time limit in seconds. Without one a limit already set cannot be taken back, so that is refused.
fn limit(key: &str, value: &str) -> Result<u64, Failure> {
    match TimeLimit::parse(value).map(|limit| limit.seconds()) {
        Some(Some(seconds)) => Ok(seconds),
        Some(None) => Err(not_here(key, value)),
        None => Err(invalid(key, value)),
    }
}

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
        "DefMemPerCPU" | "DefMemPerNode" | "MaxMemPerCPU" | "MaxMemPerNode" | "MaxNodes" => &["unlimited", "0"],
        "Hidden" | "OverSubscribe" | "RootOnly" => &["no"],
        "MinNodes" => &["0", "1"],
        "OverTimeLimit" => &["none", "0"],
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
