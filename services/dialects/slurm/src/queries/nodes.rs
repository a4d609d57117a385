//! Changes of nodes and partitions by `scontrol update` (SL-C-38).

use super::{Failure, update::Update};
use crate::words::{NodeBase, NodeState};

/// A change of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeChange {
    /// They take no new jobs.
    Drain,
    /// They take no new jobs, and their current jobs end.
    Down,
    /// They take no new jobs: something is wrong with them.
    Fail,
    /// They take jobs again.
    Resume,
    /// They take jobs again, if they were drained.
    Undrain,
}

/// The change and the reason in an update of nodes; `None` if it does not mention their state.
///
/// # Errors
/// A word that is not a state, or a node taken out of service without a reason.
pub fn node_change(update: &Update) -> Result<Option<(NodeChange, String)>, Failure> {
    let Some(word) = update.value("State") else { return Ok(None) };
    let change = match word.to_ascii_lowercase().as_str() {
        "drain" | "draining" | "drained" => NodeChange::Drain,
        "down" => NodeChange::Down,
        "fail" | "failing" => NodeChange::Fail,
        "resume" | "idle" => NodeChange::Resume,
        "undrain" => NodeChange::Undrain,
        _ => {
            let lines = vec![format!("Invalid input: {word}"), "Request aborted".to_owned()];
            return Err(Failure { lines, code: 1 });
        }
    };
    let reason = node_reason(update).unwrap_or_default();
    let takes_out = matches!(change, NodeChange::Drain | NodeChange::Down | NodeChange::Fail);
    if takes_out && reason.is_empty() {
        let text = "You must specify a reason when DOWNING or DRAINING a node. Request denied";
        return Err(Failure::plain(text));
    }
    Ok(Some((change, reason)))
}

/// The reason in an update of nodes; `None` if it gives none.
pub fn node_reason(update: &Update) -> Option<String> {
    let reason = update.value("Reason").map(|text| text.trim_matches(['"', '\'']).to_owned());
    reason.filter(|reason| !reason.is_empty())
}

/// The features that an update gives to nodes; `None` if it does not mention them. Those that a node has and those that
/// it could have are the same here, so both keys mean them.
///
/// # Errors
/// A key that nodes of muster do not have.
pub fn node_features(update: &Update) -> Result<Option<Vec<String>>, Failure> {
    let mut features = None;
    for pair in &update.pairs {
        match pair.key {
            "State" | "Reason" => {}
            "ActiveFeatures" | "AvailableFeatures" | "Features" => {
                let text = pair.value.trim_matches(['"', '\'']);
                features = Some(super::words(text).filter(|name| name != "(null)").collect());
            }
            "Weight" => {}
            key => {
                let text = format!("slurm_update error: nodes of muster cannot have {key}={}", pair.value);
                return Err(Failure { lines: vec![text, "Request aborted".to_owned()], code: 1 });
            }
        }
    }
    Ok(features)
}

/// The weight that an update gives to nodes; `None` if it does not mention it.
///
/// # Errors
/// It is not a whole number up to 4294967280.
pub fn node_weight(update: &Update) -> Result<Option<i64>, Failure> {
    // Slurm keeps larger numbers for itself.
    const MOST: u32 = 4_294_967_280;
    let Some(text) = update.value("Weight") else { return Ok(None) };
    let weight = text.parse::<u32>().ok().filter(|weight| *weight <= MOST);
    let lines = || vec![format!("Invalid input: {text}"), "Request aborted".to_owned()];
    weight.map(|weight| Some(weight.into())).ok_or_else(|| Failure { lines: lines(), code: 1 })
}

/// Refuses to return a node to service that is in service, or out of it for another reason.
///
/// # Errors
/// The node is in service already, or it is down and only its drain shall end.
pub fn check_node_change(change: NodeChange, state: NodeState) -> Result<(), Failure> {
    let is_down = matches!(state.base, NodeBase::Down | NodeBase::Unknown);
    let fits = match change {
        NodeChange::Resume => state.is_draining || is_down,
        // A node declared down stays down.
        NodeChange::Undrain => state.is_draining && !is_down,
        NodeChange::Drain | NodeChange::Down | NodeChange::Fail => true,
    };
    if fits { Ok(()) } else { Err(Failure::plain("slurm_update error: Invalid node state specified")) }
}

/// Whether a partition takes jobs, and whether it starts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionState {
    /// It takes jobs.
    pub is_enabled: bool,
    /// It starts jobs.
    pub is_started: bool,
}

/// The state in an update of a partition; `None` if it does not mention the state.
///
/// # Errors
/// A word that is not a state.
pub fn partition_state(update: &Update) -> Result<Option<PartitionState>, Failure> {
    let Some(word) = update.value("State") else { return Ok(None) };
    let (is_enabled, is_started) = match word.to_ascii_lowercase().as_str() {
        "up" => (true, true),
        "down" => (true, false),
        "drain" => (false, true),
        "inactive" => (false, false),
        _ => {
            let lines = vec![
                format!("Invalid input: {word}"),
                "Acceptable State values are UP, DOWN, DRAIN and INACTIVE".to_owned(),
            ];
            return Err(Failure { lines, code: 1 });
        }
    };
    Ok(Some(PartitionState { is_enabled, is_started }))
}
