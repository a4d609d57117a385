//! Nodes that sleep in a simulation: a model of a data centre whose nodes sleep after a time without job and need a time to
//! wake.

use crate::{
    energy::{Estimate, Occupation, SleepPolicy},
    engine::Engine,
    projection::heavier,
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    resources::{NodeSpec, Placement},
};
use serde::Serialize;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    sync::Arc,
};

/// What the nodes used, and what they would have used for the same starts if none had slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SimulatedEnergy {
    /// With nodes that sleep.
    pub sleeping: Estimate,
    /// The same runs on nodes that are always awake.
    pub always_awake: Estimate,
}

/// The nodes of a simulated cluster that sleep after a time without job.
///
/// A job that starts on nodes that sleep holds them while they wake, and begins when the last one is awake. A node that sleeps
/// weighs more than others, as in production, so that jobs get those that are awake first.
pub(super) struct Sleepers {
    policy: SleepPolicy,
    idle_seconds: i64,
    nodes: BTreeMap<NodeId, Sleeper>,
    /// When idle nodes fall asleep. An entry of a node that got a job meanwhile says nothing.
    due: BinaryHeap<Reverse<(i64, NodeId)>>,
    /// From when on each run counts on each of its nodes.
    runs: BTreeMap<JobId, Vec<(NodeId, i64)>>,
    occupation: Occupation,
    first: i64,
    last: i64,
}

struct Sleeper {
    spec: Arc<NodeSpec>,
    runs: u32,
    idle_since: i64,
    is_asleep: bool,
    /// When it is awake, if it was woken.
    awake_from: i64,
}

impl Sleepers {
    /// All nodes are awake and idle at first.
    pub(super) fn new(nodes: &[NodeSpec], policy: SleepPolicy, first: i64) -> Self {
        // A policy without idle time lets no node sleep.
        let idle_seconds = policy.idle_seconds.map_or(i64::MAX, i64::from);
        let sleeper = |spec: &NodeSpec| Sleeper {
            spec: Arc::new(spec.clone()),
            runs: 0,
            idle_since: first,
            is_asleep: false,
            awake_from: first,
        };
        let nodes: BTreeMap<NodeId, Sleeper> = (0..).map(NodeId).zip(nodes.iter().map(sleeper)).collect();
        let due = nodes.keys().map(|node| Reverse((first.saturating_add(idle_seconds), *node))).collect();
        let occupation = Occupation::of_nodes(nodes.keys().copied());
        Self { policy, idle_seconds, nodes, due, runs: BTreeMap::new(), occupation, first, last: first }
    }

    /// Puts nodes to sleep whose time has come.
    pub(super) fn fall_asleep(&mut self, now: i64, engine: &mut Engine) {
        while let Some(Reverse((at, id))) = self.due.peek().copied()
            && at <= now
        {
            self.due.pop();
            let Some(node) = self.nodes.get_mut(&id) else { continue };
            if node.runs == 0 && !node.is_asleep && node.idle_since.saturating_add(self.idle_seconds) == at {
                node.is_asleep = true;
                engine.set_node(id, heavier(&node.spec), true);
            }
        }
    }

    /// A job gets its nodes; those that sleep are woken. Returns after how many seconds it begins.
    pub(super) fn begin(&mut self, job: JobId, placement: &Placement, now: i64, engine: &mut Engine) -> i64 {
        let wakes = now.saturating_add(i64::from(self.policy.wake_up_seconds));
        let mut begins = now;
        let mut counted = Vec::new();
        for id in placement.nodes().collect::<BTreeSet<_>>() {
            let Some(node) = self.nodes.get_mut(&id) else { continue };
            node.runs += 1;
            if node.is_asleep {
                node.is_asleep = false;
                node.awake_from = wakes;
                engine.set_node(id, node.spec.clone(), true);
            }
            begins = begins.max(node.awake_from);
            counted.push((id, now.max(node.awake_from)));
        }
        self.runs.insert(job, counted);
        begins - now
    }

    /// A job has ended.
    pub(super) fn end(&mut self, job: JobId, now: i64) {
        self.last = self.last.max(now);
        for (id, from) in self.runs.remove(&job).into_iter().flatten() {
            self.occupation.count_on(id, Timestamp::from_unix_seconds(from), Timestamp::from_unix_seconds(now));
            let Some(node) = self.nodes.get_mut(&id) else { continue };
            node.runs = node.runs.saturating_sub(1);
            if node.runs == 0 {
                node.idle_since = now;
                self.due.push(Reverse((now.saturating_add(self.idle_seconds), id)));
            }
        }
    }

    /// What the nodes used from the first submission to the last end.
    pub(super) fn energy(mut self) -> SimulatedEnergy {
        self.occupation.set_span(Timestamp::from_unix_seconds(self.first), Timestamp::from_unix_seconds(self.last));
        SimulatedEnergy {
            sleeping: self.occupation.estimate(&self.policy),
            always_awake: self.occupation.estimate(&SleepPolicy { idle_seconds: None, ..self.policy }),
        }
    }
}
