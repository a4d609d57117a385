//! What the policy of a preset has to know of a site.

use crate::state_file::{NodeState, StateFile};
use muster_pbs_policy::{
    engine::{Limits, Range},
    outages::{self, Outages, short_name},
    routes::{Host, Site},
    values,
};

/// What the policy has to know of a site.
pub(super) fn site(
    state: &StateFile,
    server: Limits,
    queues: Vec<(String, Limits)>,
    range: Range,
    warnings: &mut Vec<String>,
) -> Site {
    let available = state.nodes.iter().filter(|node| !node.ts && is_available(node)).count();
    let host = |node: &NodeState| {
        let memory_kilobytes = node.physmem.as_deref().and_then(values::kilobytes);
        (short_name(&node.name), Host { processors: node.ncpus.unwrap_or(1), nodes: node.node_count, memory_kilobytes })
    };
    Site {
        server,
        queues,
        hosts: state.nodes.iter().map(host).collect(),
        whole_nodes: u32::try_from(available).ok().filter(|nodes| *nodes > 0),
        outages: state.outages.iter().map(|(name, answer)| read_outages(name, answer.as_deref(), warnings)).collect(),
        over_allocation: Vec::new(),
        now: range.from,
        range,
    }
}

fn read_outages(name: &str, answer: Option<&str>, warnings: &mut Vec<String>) -> (String, Option<Outages>) {
    let outages = match answer.map(outages::read) {
        Some(Ok(outages)) => Some(outages),
        Some(Err(mistakes)) => {
            warnings.extend(mistakes.iter().map(|mistake| format!("outages of {name}: {mistake}")));
            None
        }
        None => None,
    };
    if outages.is_none() {
        warnings.push(format!("the outages of {name} are not known: nothing starts there"));
    }
    (short_name(name), outages)
}

/// Whether jobs can get a node: a word of its state says otherwise, or that it has no state.
pub(super) fn is_available(node: &NodeState) -> bool {
    let state = node.state.as_deref().unwrap_or("free");
    let shut = ["down", "offline", "unknown", "state-unknown", "busy", "reserve", "job-sharing"];
    !state.split(',').any(|word| shut.contains(&word.trim()))
}
