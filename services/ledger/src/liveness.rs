//! Which nodes have been heard of lately. It is not history: a ledger that starts gives every node a full interval.

use muster_domain::State;
use muster_schemas::{cluster::NodeCondition, ids::NodeId};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// How often it is looked for silent nodes.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// A check that is later than this was kept from running: the ledger, or the whole machine, stood still, and so did the
/// nodes' reports.
const STOOD_STILL: Duration = Duration::from_secs(5);

/// When each node was last heard of.
#[derive(Debug)]
pub struct Liveness {
    heard: HashMap<NodeId, Instant>,
    /// No node counts as silent for longer than since this.
    since: Instant,
    next_check: Instant,
}

impl Liveness {
    /// Every node has been heard of just now.
    pub fn new(now: Instant) -> Self {
        Self { heard: HashMap::new(), since: now, next_check: now + CHECK_EVERY }
    }

    /// A node reports.
    pub fn heard(&mut self, node: NodeId, now: Instant) {
        self.heard.insert(node, now);
    }

    /// When [`Liveness::silent`] is next worth a call.
    pub fn next_check(&self) -> Instant {
        self.next_check
    }

    /// The nodes that are up as far as the log knows and have been silent for too long, each with a reason for people.
    pub fn silent(&mut self, state: &State, now: Instant) -> Vec<(NodeId, String)> {
        if now < self.next_check {
            return Vec::new();
        }
        if now.saturating_duration_since(self.next_check) > STOOD_STILL {
            self.since = now;
        }
        self.next_check = now + CHECK_EVERY;
        let patience = Duration::from_secs(u64::from(state.settings().node_lost_after_seconds));
        let since = self.since;
        let last_heard = |node: NodeId| self.heard.get(&node).copied().unwrap_or(since).max(since);
        let up = state.nodes().filter(|node| node.condition == NodeCondition::Up);
        up.filter_map(|node| {
            let silence = now.saturating_duration_since(last_heard(node.id));
            let reason = || format!("not heard of for {} seconds", silence.as_secs());
            (silence > patience).then(|| (node.id, reason()))
        })
        .collect()
    }
}
