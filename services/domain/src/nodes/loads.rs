//! The loads of nodes, for policies that choose nodes by them (PBS-L-03).

use crate::{runs::Run, state::State};
use muster_schemas::{NodeId, node::NodeLoad, policy::LoadTable, resources::Placement};
use std::collections::BTreeMap;

impl State {
    pub(crate) fn node_load_measured(&mut self, node: NodeId, load: NodeLoad) {
        if self.nodes.contains_key(&node) {
            self.loads.measured.insert(node, load);
        }
    }

    /// The load of a node that is gone, or reports no more, is not known.
    pub(crate) fn forget_load(&mut self, node: NodeId) {
        self.loads.measured.remove(&node);
    }

    /// Notes the last node of the policy's table that a start uses.
    pub(crate) fn note_chosen_by_load(&mut self, placement: &Placement) {
        let Some(table) = self.load_table() else { return };
        let is_listed = |node: &NodeId| {
            let name = self.nodes.get(node).map(|node| &node.spec.name);
            name.is_some_and(|name| table.nodes.iter().any(|listed| listed.name == *name))
        };
        if let Some(node) = placement.shares().map(|share| share.node).filter(is_listed).last() {
            self.loads.last = Some(node);
        }
    }

    fn load_table(&self) -> Option<&LoadTable> {
        self.planning.policy.as_ref()?.turns.as_ref()?.loads.as_deref()
    }

    /// The last measured load of a node.
    pub fn node_load(&self, node: NodeId) -> Option<NodeLoad> {
        self.loads.measured.get(&node).copied()
    }

    /// The node of the policy's table on which something started last.
    pub fn last_chosen_by_load(&self) -> Option<NodeId> {
        self.loads.last
    }

    /// The loads of the nodes in the policy's table, in millionths, with the cores of runs that the measured loads do not show
    /// yet (PBS-L-05). Nodes with unknown loads are not there.
    pub fn settled_loads(&self) -> BTreeMap<NodeId, u64> {
        let Some(table) = self.load_table() else { return BTreeMap::new() };
        let known = table.nodes.iter().filter_map(|listed| self.node_by_name(&listed.name));
        let mut loads: BTreeMap<NodeId, u64> =
            known.filter_map(|node| Some((node.id, self.node_load(node.id)?.millionths))).collect();
        let settle_seconds = i64::try_from(table.settle_seconds).unwrap_or(i64::MAX);
        for run in self.runs.values().filter(|_| settle_seconds > 0) {
            self.add_unsettled(&mut loads, run, settle_seconds);
        }
        loads
    }

    fn add_unsettled(&self, loads: &mut BTreeMap<NodeId, u64>, run: &Run, settle_seconds: i64) {
        let settled = run.started.unwrap_or(run.allocated).plus_seconds(settle_seconds);
        for share in run.placement.shares() {
            let is_settled = self.node_load(share.node).is_some_and(|load| load.at >= settled);
            if let Some(load) = loads.get_mut(&share.node).filter(|_| !is_settled) {
                *load = load.saturating_add(share.cores.len().saturating_mul(1_000_000));
            }
        }
    }
}
