//! Queries about nodes that sleep.

use crate::{
    nodes::Node,
    power::NodePower,
    runs::{PartState, Run},
    state::State,
};
use muster_schemas::{
    NodeId, Timestamp,
    cluster::NodeCondition,
    energy::{EnergySettings, PowerPhase, PowerRule, PowerView, PowerWay},
    job::JobType,
};

impl State {
    /// The settings for nodes that sleep, if there are some.
    pub(crate) fn energy(&self) -> Option<&EnergySettings> {
        self.settings.energy.as_ref()
    }

    /// The power state of a node, if it is not simply awake.
    pub fn power_of(&self, node: NodeId) -> Option<NodePower> {
        self.power.nodes.get(&node).copied()
    }

    /// The same for people and programs.
    pub fn power_view(&self, node: &Node) -> Option<PowerView> {
        let power = self.power_of(node.id)?;
        Some(PowerView { phase: power.phase, since: power.since, wakes: self.can_wake(node) })
    }

    /// Whether jobs can be placed on a node: it is available, or it can be woken for them (OAR-E-02).
    pub fn takes_jobs(&self, node: &Node) -> bool {
        match self.power_of(node.id) {
            None => node.is_available(),
            Some(_) => node.drained.is_none() && self.can_wake(node),
        }
    }

    /// Whether a node takes jobs that cannot wait for it to wake.
    pub fn takes_jobs_now(&self, node: &Node) -> bool {
        node.is_available() && self.is_awake(node.id)
    }

    /// Whether a node may be woken, and there is a program to do it.
    pub(crate) fn can_wake(&self, node: &Node) -> bool {
        let has_program = self.energy().is_some_and(|energy| !energy.program(PowerWay::Wake).is_empty());
        has_program && PowerRule::of(&node.spec).wakes
    }

    /// Whether a node neither sleeps nor is on its way.
    pub(crate) fn is_awake(&self, node: NodeId) -> bool {
        !self.power.nodes.contains_key(&node)
    }

    /// Whether a node was ordered to sleep and still reports.
    pub(crate) fn is_falling_asleep(&self, node: NodeId) -> bool {
        self.power_of(node).is_some_and(|power| power.phase == PowerPhase::FallingAsleep)
    }

    /// Whether all nodes of a run report and stay awake.
    pub(crate) fn has_awake_nodes(&self, run: &Run) -> bool {
        let is_up = |node: NodeId| self.node(node).is_some_and(|node| node.condition == NodeCondition::Up);
        self.nodes_to_wake(run).all(|node| self.is_awake(node) && is_up(node))
    }

    /// The nodes that must be awake for a run; it may leave others asleep (OAR-T-71).
    pub(crate) fn nodes_to_wake<'r>(&self, run: &'r Run) -> impl Iterator<Item = NodeId> + use<'r> {
        let leaves_asleep = self.job(run.job).is_some_and(|job| job.types().contains(&JobType::LeavesAsleep));
        let concerned = run.parts.iter().filter(move |part| !leaves_asleep || part.state != PartState::Held);
        concerned.map(|part| part.node)
    }

    /// Since when a node has been without run, as far as it is known.
    pub(crate) fn idle_since(&self, node: &Node) -> Timestamp {
        self.power.idle.get(&node.id).copied().unwrap_or(node.condition_since)
    }
}
