//! The inputs of a search, and what it has placed so far.

use crate::{engine::Run, machine::Machine};
use muster_schemas::{JobId, NodeId, Timestamp, cluster::QueueSpec, resources::NodeShare};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// The surroundings of a search.
#[derive(Clone, Copy)]
pub(crate) struct Search<'s> {
    pub machine: &'s Machine,
    pub queues: &'s BTreeMap<Arc<str>, QueueSpec>,
    pub default_memory_per_core_bytes: Option<u64>,
    /// Whether components of a job may be on the same node if they do not fit otherwise (SL-P-07).
    pub shares_nodes: bool,
    /// The present. A start now takes cores that are free now; a later start only counts them.
    pub now: Timestamp,
    /// Whether free resources only grow from now on, for jobs without reservation: no promise and no closure is ahead.
    pub only_grows: bool,
    /// The ends of runs, ascending, and their holdings.
    pub ends: &'s BTreeSet<(Timestamp, JobId)>,
    pub runs: &'s HashMap<JobId, Run>,
    /// The resources of nodes at a moment, if they are known: then most nodes need no closer look.
    pub known: Option<(Timestamp, Known<'s>)>,
    /// The allowed ways to serve each component of the demand; `None`: all.
    pub ways: Option<&'s [Vec<bool>]>,
}

/// The resources of nodes at a moment.
#[derive(Clone, Copy)]
pub(crate) enum Known<'s> {
    /// The most cores that each node can have.
    Cores(&'s [u32]),
    /// The nodes that may serve, by their index.
    Looks(&'s BTreeMap<u32, Look>),
}

/// The holdings of the components placed so far.
#[derive(Default)]
pub(super) struct Taken<'d> {
    /// Nodes that nobody else can have a part of.
    pub nodes: BTreeSet<NodeId>,
    /// Holdings on nodes that others may share.
    pub shares: BTreeMap<NodeId, Vec<NodeShare>>,
    pub licences: BTreeMap<&'d str, u32>,
    /// With several components, how long the last of them may run: all of them hold their resources that long.
    pub longest: Option<Option<u64>>,
}

/// A look at a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// The tasks that it has room for.
    pub room: u32,
    /// The version of the node when it was looked at.
    pub version: u32,
    /// A window that begins later may have less room.
    pub holds_until: Timestamp,
    pub again: Option<Timestamp>,
}
