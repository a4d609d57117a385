//! The power states of nodes, and the orders about them.

use muster_schemas::{
    NodeId, RunId, Sequence, Timestamp,
    energy::{PowerPhase, PowerWay},
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// All that is known of nodes that sleep. It is empty while no node may.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Power {
    /// The nodes that are not simply awake.
    pub(crate) nodes: BTreeMap<NodeId, NodePower>,
    /// Since when nodes have been without run; those that are not here have one, or are new.
    pub(crate) idle: BTreeMap<NodeId, Timestamp>,
    /// What operators asked for and is not ordered yet.
    pub(crate) asked: BTreeMap<NodeId, PowerWay>,
    /// The orders whose program has not ended, with the nodes.
    pub(crate) orders: BTreeMap<Sequence, (PowerWay, Vec<NodeId>)>,
    /// The runs that wait for nodes to wake.
    pub(crate) waiting: BTreeSet<RunId>,
    /// The last period in which nodes were put to sleep.
    pub(crate) sleeps: Period,
    /// The last period in which nodes were woken.
    pub(crate) wakes: Period,
}

/// When an order has failed whose program has not ended: other notices may have been ahead of it.
pub(crate) fn late(since: Timestamp, until: Timestamp) -> Timestamp {
    until.plus_micros(until.micros_since(since))
}

/// A node that is not simply awake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePower {
    /// Its state.
    pub phase: PowerPhase,
    /// Since when.
    pub since: Timestamp,
    /// When it has failed, unless it sleeps, once the program of its order has ended.
    pub(crate) until: Timestamp,
    /// When it has failed, unless it sleeps: later while a program runs for it. It follows from the orders, so it is not
    /// stored.
    #[serde(skip)]
    pub(crate) fails: Timestamp,
}

impl NodePower {
    /// A node that was ordered to change its state now, and has until then.
    pub(crate) fn ordered(phase: PowerPhase, now: Timestamp, until: Timestamp) -> Self {
        Self { phase, since: now, until, fails: late(now, until) }
    }

    /// A node that sleeps from now on.
    pub(crate) fn asleep(now: Timestamp) -> Self {
        Self { phase: PowerPhase::Asleep, since: now, until: now, fails: now }
    }
}

/// A period in which a limited number of nodes get orders (OAR-E-08).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    /// When it began.
    pub(crate) since: Timestamp,
    /// How many nodes got an order in it.
    pub(crate) nodes: u32,
}

impl Period {
    /// How many more nodes may get an order at a time.
    pub(crate) fn room(self, now: Timestamp, most: u32, seconds: u32) -> u32 {
        if self.is_over(now, seconds) { most } else { most.saturating_sub(self.nodes) }
    }

    /// When there is room again.
    pub(crate) fn reopens(self, most: u32, seconds: u32) -> Timestamp {
        if self.nodes < most { self.since } else { self.since.plus_seconds(i64::from(seconds)) }
    }

    /// Counts an order.
    pub(crate) fn count(&mut self, now: Timestamp, nodes: u32, seconds: u32) {
        if self.is_over(now, seconds) {
            *self = Self { since: now, nodes: 0 };
        }
        self.nodes = self.nodes.saturating_add(nodes);
    }

    fn is_over(self, now: Timestamp, seconds: u32) -> bool {
        self.nodes == 0 || self.since.plus_seconds(i64::from(seconds)) <= now
    }
}

impl Power {
    /// An order's program has ended: its nodes have the rest of their usual time, unless another program runs for them.
    pub(crate) fn program_ended(&mut self, order: Sequence) {
        let Some((_, nodes)) = self.orders.remove(&order) else { return };
        let pending: BTreeSet<NodeId> = self.orders.values().flat_map(|(_, nodes)| nodes).copied().collect();
        for id in nodes.iter().filter(|id| !pending.contains(id)) {
            if let Some(node) = self.nodes.get_mut(id) {
                node.fails = node.until;
            }
        }
    }

    /// Restores when nodes have failed, which is not stored.
    pub(crate) fn restore_fails(&mut self) {
        let pending: BTreeSet<NodeId> = self.orders.values().flat_map(|(_, nodes)| nodes).copied().collect();
        for (id, node) in &mut self.nodes {
            node.fails = if pending.contains(id) { late(node.since, node.until) } else { node.until };
        }
    }

    /// The last period for a way.
    pub(crate) fn period(&self, way: PowerWay) -> Period {
        match way {
            PowerWay::Sleep => self.sleeps,
            PowerWay::Wake => self.wakes,
        }
    }
}
