//! Free resources of nodes, while a plan is being made.

use muster_schemas::{
    ids::NodeId,
    resources::{IndexSet, NodeShare, NodeSpec, Placement},
};
use std::{borrow::Cow, collections::BTreeMap};

/// The free resources of a node.
#[derive(Clone, Debug)]
pub struct FreeNode<'a> {
    /// The node.
    pub node: NodeId,
    /// Its specification.
    pub spec: &'a NodeSpec,
    /// Its free cores.
    pub cores: Cow<'a, IndexSet>,
    /// Its free GPUs.
    pub gpus: Cow<'a, IndexSet>,
    /// Its free memory.
    pub memory_bytes: u64,
    /// Whether nothing runs there.
    pub idle: bool,
    /// Whether a run has it exclusively.
    pub exclusive: bool,
}

impl<'a> FreeNode<'a> {
    /// The node with nothing on it.
    pub fn empty(node: NodeId, spec: &'a NodeSpec) -> Self {
        Self {
            node,
            spec,
            cores: Cow::Owned(IndexSet::first_n(spec.cores)),
            gpus: Cow::Owned(IndexSet::first_n(spec.gpus.len() as u32)),
            memory_bytes: spec.memory_bytes,
            idle: true,
            exclusive: false,
        }
    }

    /// Takes a share of it.
    pub fn take(&mut self, share: &NodeShare) {
        self.cores = Cow::Owned(self.cores.difference(&share.cores));
        self.gpus = Cow::Owned(self.gpus.difference(&share.gpus));
        self.memory_bytes = self.memory_bytes.saturating_sub(share.memory_bytes);
        self.idle = false;
        self.exclusive |= share.exclusive;
    }
}

/// The free resources of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Free<'a> {
    /// In order of their numbers.
    nodes: Vec<FreeNode<'a>>,
    licences: BTreeMap<&'a str, u32>,
}

/// [`Free`] as it was before resources were taken.
#[derive(Debug, Default)]
pub struct Undo<'a> {
    nodes: Vec<(usize, FreeNode<'a>)>,
    licences: Vec<(&'a str, u32)>,
}

impl Undo<'_> {
    /// Adds what a later one remembers.
    pub fn append(&mut self, mut later: Self) {
        self.nodes.append(&mut later.nodes);
        self.licences.append(&mut later.licences);
    }
}

impl<'a> Free<'a> {
    /// These nodes, and these numbers of licences. The nodes are in order of their numbers.
    pub fn new(
        nodes: impl IntoIterator<Item = FreeNode<'a>>,
        licences: impl IntoIterator<Item = (&'a str, u32)>,
    ) -> Self {
        let nodes: Vec<FreeNode<'a>> = nodes.into_iter().collect();
        debug_assert!(nodes.windows(2).all(|pair| pair[0].node < pair[1].node), "nodes out of order");
        Self { nodes, licences: licences.into_iter().collect() }
    }

    /// All nodes, in order of their numbers.
    pub fn nodes(&self) -> &[FreeNode<'a>] {
        &self.nodes
    }

    /// How many of a licence are free.
    pub fn licence(&self, name: &str) -> u32 {
        self.licences.get(name).copied().unwrap_or(0)
    }

    /// Takes a share of a node, and records what was there before.
    pub fn take_share(&mut self, share: &NodeShare, undo: &mut Undo<'a>) {
        if let Ok(at) = self.nodes.binary_search_by_key(&share.node, |node| node.node) {
            undo.nodes.push((at, self.nodes[at].clone()));
            self.nodes[at].take(share);
        }
    }

    /// Takes licences, and records how many there were before.
    pub fn take_licences(&mut self, licences: &BTreeMap<String, u32>, undo: &mut Undo<'a>) {
        for (name, count) in licences {
            if let Some((name, _)) = self.licences.get_key_value(name.as_str()) {
                let name = *name;
                let free = self.licence(name);
                undo.licences.push((name, free));
                self.licences.insert(name, free.saturating_sub(*count));
            }
        }
    }

    /// Takes the nodes' part of a placement for good.
    pub fn take_placement(&mut self, placement: &Placement) {
        let mut forgotten = Undo::default();
        for share in placement.shares() {
            self.take_share(share, &mut forgotten);
        }
    }

    /// Puts everything back as it was before.
    pub fn undo(&mut self, undo: Undo<'a>) {
        for (at, node) in undo.nodes.into_iter().rev() {
            self.nodes[at] = node;
        }
        for (name, free) in undo.licences.into_iter().rev() {
            self.licences.insert(name, free);
        }
    }
}
