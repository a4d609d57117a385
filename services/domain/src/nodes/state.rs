//! Nodes, queues and licences, with their free resources.

use muster_schemas::{
    NodeId, RunId, Sequence, Timestamp,
    cluster::{NodeCondition, QueueSpec},
    node::GpuFault,
    plan::NodeClosure,
    resources::{IndexSet, NodeSpec},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// How a node was taken out of service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenOut {
    /// The login name of the actor.
    pub by: Arc<str>,
    /// When it was taken out.
    pub at: Timestamp,
    /// Whether it is down, rather than drained.
    pub is_down: bool,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// Its specification.
    pub spec: Arc<NodeSpec>,
    /// Whether it reports.
    pub condition: NodeCondition,
    /// Since when it has this condition.
    pub condition_since: Timestamp,
    /// The boot that it last reported; empty before its first report.
    pub boot_id: String,
    /// The record of that report: a report made before it cannot be about a later boot.
    pub greeted: Sequence,
    /// Why it takes no new jobs, if an operator drained it.
    pub drained: Option<String>,
    /// Cores that no run has.
    pub free_cores: IndexSet,
    /// GPUs that no run has.
    pub free_gpus: IndexSet,
    /// Memory that no run has.
    pub free_memory_bytes: u64,
    /// The run that has the node exclusively.
    pub exclusive: Option<RunId>,
    /// The runs with a share of it.
    pub runs: BTreeSet<RunId>,
    /// Times in which it serves no jobs, in order and without overlap.
    pub closures: Vec<NodeClosure>,
    /// Its GPUs that no run may begin with, in order of their numbers.
    pub gpu_faults: Vec<GpuFault>,
}

impl Node {
    pub(crate) fn new(id: NodeId, spec: Arc<NodeSpec>, now: Timestamp) -> Self {
        Self {
            id,
            condition: NodeCondition::Unknown,
            condition_since: now,
            boot_id: String::new(),
            greeted: Sequence(0),
            drained: None,
            free_cores: IndexSet::first_n(spec.cores),
            free_gpus: IndexSet::first_n(gpu_count(&spec)),
            free_memory_bytes: spec.memory_bytes,
            exclusive: None,
            runs: BTreeSet::new(),
            closures: Vec::new(),
            gpu_faults: Vec::new(),
            spec,
        }
    }

    /// Whether it can be given to a job now: it reports and is not drained.
    pub fn is_available(&self) -> bool {
        self.condition == NodeCondition::Up && self.drained.is_none()
    }

    /// Its GPUs that no run may begin with.
    pub fn faulty_gpus(&self) -> IndexSet {
        self.gpu_faults.iter().map(|fault| fault.gpu).collect()
    }

    /// The closure at a time.
    pub fn closure_at(&self, now: Timestamp) -> Option<&NodeClosure> {
        self.closures.iter().find(|closure| closure.from <= now && now < closure.until)
    }

    /// When its first closure ends, if it has one with an end.
    pub(crate) fn closure_due(&self) -> Option<Timestamp> {
        self.closures.first().map(|closure| closure.until).filter(|until| *until < Timestamp::MAX)
    }
}

/// The number of GPUs of a node.
pub(crate) fn gpu_count(spec: &NodeSpec) -> u32 {
    u32::try_from(spec.gpus.len()).unwrap_or(u32::MAX)
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Its specification.
    pub spec: Arc<QueueSpec>,
    /// Its unfinished jobs; an array counts as one.
    pub jobs: u64,
    /// Its jobs with a run; tasks of arrays count individually.
    pub running: u32,
    /// The same for each user with any.
    pub running_by_user: BTreeMap<String, u32>,
}

impl Queue {
    pub(crate) fn new(spec: Arc<QueueSpec>) -> Self {
        Self { spec, jobs: 0, running: 0, running_by_user: BTreeMap::new() }
    }

    /// The number of the user's jobs with a run in it.
    pub fn running_of(&self, user: &str) -> u32 {
        self.running_by_user.get(user).copied().unwrap_or(0)
    }

    pub(crate) fn run_began(&mut self, user: &str) {
        self.running += 1;
        match self.running_by_user.get_mut(user) {
            Some(count) => *count += 1,
            None => {
                self.running_by_user.insert(user.to_owned(), 1);
            }
        }
    }

    pub(crate) fn run_ended(&mut self, user: &str) {
        self.running = self.running.saturating_sub(1);
        if let Some(count) = self.running_by_user.get_mut(user) {
            *count -= 1;
            if *count == 0 {
                self.running_by_user.remove(user);
            }
        }
    }
}

/// A floating licence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Licence {
    /// The number that exist.
    pub total: u32,
    /// The number that runs have. It can exceed the total after that was lowered.
    pub used: u32,
}

impl Licence {
    /// How many are free.
    pub fn free(&self) -> u32 {
        self.total.saturating_sub(self.used)
    }
}
