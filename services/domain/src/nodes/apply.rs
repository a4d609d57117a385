//! Settings, queues, licences, nodes.

use crate::{
    jobs::Job,
    nodes::{Node, Queue, TakenOut, state::gpu_count},
    state::{ClusterIdentity, State},
};
use muster_schemas::{
    JobId, NodeId, RunId, Sequence, Timestamp,
    cluster::{ClusterSettings, NodeCondition, QueueSpec},
    event::Actor,
    node::GpuFault,
    resources::{IndexSet, NodeShare, NodeSpec},
};
use std::sync::Arc;

impl State {
    pub(crate) fn initialised(&mut self, cluster_id: [u8; 16], public_key: [u8; 32]) {
        self.cluster = Some(ClusterIdentity { cluster_id, public_key });
    }

    pub(crate) fn settings_changed(&mut self, settings: &Arc<ClusterSettings>, by: Sequence) {
        let old = &self.settings.name;
        if *old != settings.name {
            self.past_names.clusters.push((by, old.clone()));
        }
        let before = std::mem::replace(&mut self.settings, settings.clone());
        self.energy_changed(&before);
        if before.quotas != settings.quotas {
            self.note_freed();
        }
    }

    pub(crate) fn queue_set(&mut self, spec: &Arc<QueueSpec>) {
        let passes_on = spec.route.is_some();
        if passes_on != self.index.passing.contains_key(spec.name.as_str()) {
            let waits = |job: &&Job| job.is_waiting() && job.id.index.is_none() && *job.lead().queue == *spec.name;
            let jobs = passes_on.then(|| self.jobs().filter(waits).map(|job| (job.queued, job.id)).collect());
            self.index.note_passing(&spec.name, jobs);
        }
        match self.queues.get_mut(spec.name.as_str()) {
            Some(queue) => queue.spec = spec.clone(),
            None => {
                let name = self.pools.text.share(spec.name.as_str());
                self.queues.insert(name, Queue::new(spec.clone()));
            }
        }
        self.note_freed();
    }

    pub(crate) fn licence_set(&mut self, name: &str, total: u32) {
        let licence = self.licences.entry(name.to_owned()).or_default();
        let is_raised = licence.total < total;
        licence.total = total;
        if licence.total == 0 && licence.used == 0 {
            self.licences.remove(name);
        }
        if is_raised {
            self.note_freed();
        }
    }

    /// A run of a job takes a share of a node, if the node exists.
    pub(crate) fn take_share(&mut self, job: JobId, run: RunId, share: &NodeShare) {
        if self.take_inside(run, share) {
            return;
        }
        let known = self.job(job).or_else(|| self.job(job.whole()));
        let mut spare = known.map(|job| self.open_to(job, share.node)).unwrap_or_default();
        if self.lends_on(share.node) {
            spare.cores = spare.cores.union(&self.idle_cores(share.node, run));
        }
        let taken = self.nodes.get_mut(&share.node).map(|node| node.take(run, share, &spare));
        self.require(taken.unwrap_or(Ok(())));
        self.note_idle(share.node, self.time);
    }

    /// A run gives back a share of a node, if the node exists.
    pub(crate) fn give_back_share(&mut self, run: RunId, share: &NodeShare, lends_cores: bool) {
        if self.give_back_inside(run, share, false) {
            return;
        }
        let given_back = self.nodes.get_mut(&share.node).map(|node| node.give_back(run, share, lends_cores));
        self.require(given_back.unwrap_or(Ok(())));
        self.leave_inner_runs(run, share);
        self.keep_from_free(share.node, run);
        self.keep_shared(share.node, run);
        self.note_idle(share.node, self.time);
    }

    /// A run gives back part of its share of a node, and keeps the rest, if any.
    pub(crate) fn give_back_part(&mut self, run: RunId, part: &NodeShare, how: (bool, bool)) {
        if self.give_back_inside(run, part, how.1) {
            return;
        }
        let given_back = self.nodes.get_mut(&part.node).map(|node| node.give_back_part(run, part, how));
        self.require(given_back.unwrap_or(Ok(())));
        self.keep_from_free(part.node, run);
        self.keep_shared(part.node, run);
        self.note_idle(part.node, self.time);
    }

    /// A condition that must hold for the record that is being applied. The first violation is reported.
    pub(crate) fn require(&mut self, holds: Result<(), String>) {
        if let Err(fault) = holds {
            self.fault.get_or_insert(fault.into());
        }
    }

    pub(crate) fn node_added(&mut self, id: NodeId, spec: &Arc<NodeSpec>, now: Timestamp) {
        self.require_unused(id, "added a second time");
        self.next_node = self.next_node.max(id.0.saturating_add(1));
        self.index.node_names.insert(spec.name.clone(), id);
        self.nodes.insert(id, Node::new(id, spec.clone(), now));
    }

    pub(crate) fn node_changed(&mut self, id: NodeId, spec: &Arc<NodeSpec>) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let before = (used_cores(node, &node.spec), used_gpus(node, &node.spec));
        node.free_cores = resized(&node.free_cores, node.spec.cores, spec.cores);
        node.free_gpus = resized(&node.free_gpus, gpu_count(&node.spec), gpu_count(spec));
        let used = node.spec.memory_bytes.saturating_sub(node.free_memory_bytes);
        node.free_memory_bytes = spec.memory_bytes.saturating_sub(used);
        let after = (used_cores(node, spec), used_gpus(node, spec));
        let fits = before == after && used <= spec.memory_bytes;
        let (name, (cores, gpus)) = (&spec.name, before);
        let fault =
            || format!("node {name}: {cores} cores, {gpus} GPUs and {used} bytes are used, more than it is to have");
        let fits = if fits { Ok(()) } else { Err(fault()) };
        node.spec = spec.clone();
        node.gpu_faults.retain(|fault| fault.gpu < gpu_count(spec));
        self.require(fits);
        self.note_freed();
    }

    /// A node is added or removed only while no run has a share of it.
    fn require_unused(&mut self, id: NodeId, what: &str) {
        let used = self.nodes.get(&id).filter(|node| !node.runs.is_empty());
        let fault = used.map(|node| {
            format!("node {}: it is {what}, and {} runs have shares of it", node.spec.name, node.runs.len())
        });
        self.require(fault.map_or(Ok(()), Err));
    }

    pub(crate) fn node_removed(&mut self, id: NodeId) {
        self.require_unused(id, "removed");
        if let Some(node) = self.nodes.remove(&id) {
            self.index.node_names.remove(&node.spec.name);
            self.past_names.nodes.insert(id, node.spec.name.clone());
            self.index.move_closure(id, node.closure_due(), None);
        }
        self.altered.nodes.remove(&id);
        self.forget_load(id);
        self.forget_power(id);
    }

    pub(crate) fn node_up(&mut self, id: NodeId, boot_id: &str, now: Timestamp) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.condition = NodeCondition::Up;
            node.condition_since = now;
            node.boot_id = boot_id.to_owned();
            node.greeted = self.sequence;
        }
        self.node_awake(id);
        self.note_freed();
    }

    pub(crate) fn node_lost(&mut self, id: NodeId, reason: &str, now: Timestamp) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.condition = NodeCondition::Lost(reason.to_owned());
            node.condition_since = now;
        }
        self.forget_load(id);
    }

    pub(crate) fn node_gpus_checked(&mut self, id: NodeId, faults: &[GpuFault]) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.gpu_faults = faults.to_vec();
        }
        self.note_freed();
    }

    pub(crate) fn node_drained(&mut self, id: NodeId, reason: Option<&String>) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.drained = reason.cloned();
        }
        self.altered.nodes.remove(&id);
        if reason.is_none() {
            self.note_freed();
        }
    }

    pub(crate) fn node_taken_out(&mut self, id: NodeId, reason: &String, is_down: bool, actor: &Actor) {
        self.node_drained(id, Some(reason));
        let by = match actor {
            Actor::User(owner) => owner.user.as_str(),
            _ => "muster",
        };
        let at = self.time;
        if self.nodes.contains_key(&id) {
            self.altered.nodes.insert(id, TakenOut { by: by.into(), at, is_down });
        }
    }
}

/// How many cores of a node would be used if it had as many as `spec` says.
fn used_cores(node: &Node, spec: &NodeSpec) -> u64 {
    u64::from(spec.cores).saturating_sub(node.free_cores.len())
}

fn used_gpus(node: &Node, spec: &NodeSpec) -> u64 {
    (spec.gpus.len() as u64).saturating_sub(node.free_gpus.len())
}

/// The free ones of `after` numbers, given those free of `before`.
fn resized(free: &IndexSet, before: u32, after: u32) -> IndexSet {
    let all = IndexSet::first_n(after);
    all.difference(&IndexSet::first_n(before).difference(free))
}
