//! Queries about nodes, queues and licences.

use crate::{
    nodes::{Licence, Node, Queue, TakenOut},
    state::State,
};
use muster_schemas::{NodeId, Sequence, cluster::ClusterConfig, event::uuid_bytes::UuidBytes, public};
use std::borrow::Cow;

impl State {
    /// The current configuration.
    pub fn configuration(&self) -> ClusterConfig {
        ClusterConfig {
            settings: self.settings().clone(),
            queues: self.queues().map(|queue| (*queue.spec).clone()).collect(),
            nodes: self.nodes().map(|node| (*node.spec).clone()).collect(),
            licences: self.licences().map(|(name, licence)| (name.to_owned(), licence.total)).collect(),
            staging: (**self.staging_settings()).clone(),
            accounts: Some(self.accounts().settings().clone()),
            first_job_number: Some(self.first_job_number()),
        }
    }

    /// All queues, by name.
    pub fn queues(&self) -> impl ExactSizeIterator<Item = &Queue> {
        self.queues.values()
    }

    /// A queue.
    pub fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues.get(name)
    }

    /// All floating licences, by name.
    pub fn licences(&self) -> impl ExactSizeIterator<Item = (&str, &Licence)> {
        self.licences.iter().map(|(name, licence)| (name.as_str(), licence))
    }

    /// A floating licence.
    pub fn licence(&self, name: &str) -> Option<&Licence> {
        self.licences.get(name)
    }

    /// All nodes, by number.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Node> {
        self.nodes.values()
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// The node with this name.
    pub fn node_by_name(&self, name: &str) -> Option<&Node> {
        self.index.node_names.get(name).and_then(|id| self.node(*id))
    }

    /// The name of a node, even if it has been removed; its number as text if it never existed.
    pub fn node_name(&self, id: NodeId) -> Cow<'_, str> {
        public::node_name(self, id)
    }

    /// Who took a node out of service, if it is out and the actor was recorded.
    pub fn taken_out(&self, node: NodeId) -> Option<&TakenOut> {
        self.altered.nodes.get(&node)
    }

    /// The number and name of each node that exists or existed.
    pub fn known_nodes(&self) -> impl Iterator<Item = (NodeId, &str)> {
        let removed = self.past_names.nodes.iter().map(|(node, name)| (*node, name.as_str()));
        self.nodes().map(|node| (node.id, node.spec.name.as_str())).chain(removed)
    }
}

impl State {
    /// When the log was last restored from a backup: the first record after it, and the id of the log since then.
    pub fn restored(&self) -> Option<(Sequence, UuidBytes)> {
        self.past_names.logs.last().copied()
    }
}

impl public::Names for State {
    fn node_name(&self, node: NodeId) -> Option<&str> {
        let removed = || self.past_names.nodes.get(&node).map(String::as_str);
        self.node(node).map(|node| node.spec.name.as_str()).or_else(removed)
    }

    fn cluster_name(&self, at: Sequence) -> &str {
        let past = &self.past_names.clusters;
        let later = past.partition_point(|(ended_by, _)| *ended_by <= at);
        past.get(later).map_or(&self.settings().name, |(_, name)| name)
    }

    fn log_id(&self, at: Sequence) -> UuidBytes {
        let restored = &self.past_names.logs;
        let first = || UuidBytes(self.cluster().map_or([0; 16], |cluster| cluster.cluster_id));
        let before = restored.partition_point(|(from, _)| *from <= at);
        before.checked_sub(1).and_then(|last| restored.get(last)).map_or_else(first, |(_, log_id)| *log_id)
    }
}
