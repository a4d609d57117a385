//! Invariants of planning domains.

use crate::{invariants::ensure, nodes::Node, state::State};
use muster_schemas::{
    RunId,
    resources::{IndexSet, NodeShare},
};
use std::collections::BTreeMap;

/// A share inside a run on a node lies in that run's share, and nothing there is used twice.
pub(crate) fn nested(state: &State) -> Result<(), String> {
    state.nodes().try_for_each(|node| on_node(state, node))
}

fn on_node(state: &State, node: &Node) -> Result<(), String> {
    let name = &node.spec.name;
    let mut inside: BTreeMap<RunId, Vec<(RunId, &NodeShare)>> = BTreeMap::new();
    for (run, share) in state.users_inside(node.id) {
        if let Some(holder) = state.holder_of(run, share) {
            inside.entry(holder.id).or_default().push((run, share));
        }
    }
    for (holder, users) in inside {
        let held: Vec<&NodeShare> = state.run(holder).into_iter().flat_map(|run| run.shares_on(node.id)).collect();
        let (mut cores, mut gpus, mut memory) = (IndexSet::new(), IndexSet::new(), 0);
        for (run, share) in &users {
            let is_new = cores.intersection(&share.cores).is_empty() && gpus.intersection(&share.gpus).is_empty();
            ensure(is_new, || format!("node {name}: run {run} has what another run inside run {holder} has"))?;
            ensure(!share.exclusive || users.len() == 1, || {
                format!("node {name}: run {run} has it for itself inside run {holder} and is not alone")
            })?;
            cores = cores.union(&share.cores);
            gpus = gpus.union(&share.gpus);
            memory += share.memory_bytes;
        }
        let has_gpus = held.iter().fold(IndexSet::new(), |all, held| all.union(&held.gpus)).contains_all(&gpus);
        ensure(has_gpus, || format!("node {name}: runs inside run {holder} have GPUs that it does not have"))?;
        let all: u64 = held.iter().map(|held| held.memory_bytes).sum();
        ensure(memory <= all, || format!("node {name}: runs inside run {holder} have {memory} bytes of {all}"))?;
    }
    Ok(())
}
