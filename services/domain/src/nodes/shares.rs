//! Taking and giving back shares of nodes, with a check each time that free and used resources add up.
//!
//! Resources that are taken must be free, and those given back must not be: so a node that began with all of its cores,
//! GPUs and memory free never has more or fewer of them, and no core belongs to two runs. Cores that a suspended run
//! has lent are free too. Only sizes are compared, so the cost is negligible.

use crate::nodes::{Node, state::gpu_count, validate::within};
use muster_schemas::{
    RunId, Sequence,
    resources::{IndexSet, NodeShare},
};
use std::{collections::BTreeSet, fmt};

/// A record after which free and used resources would not add up. It must not be kept, and a state that includes it is
/// unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The record.
    pub record: Sequence,
    /// Its kind of event, such as `job.allocated`.
    pub event: String,
    /// The node and the effect on it, with numbers.
    pub fault: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { record, event, fault } = self;
        write!(f, "record {record} ({event}) contradicts what is free and used: {fault}")
    }
}

impl std::error::Error for Violation {}

/// Parts of a node that runs hold; or those among them that a further run may have all the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spare {
    /// The cores.
    pub(crate) cores: IndexSet,
    /// The GPUs.
    pub(crate) gpus: IndexSet,
    /// A run that has the node exclusively: one of those who hold it, or one in whose way a further run is.
    pub(crate) exclusive: Option<RunId>,
    /// Those who hold it.
    pub(crate) runs: BTreeSet<RunId>,
}

impl Node {
    /// A run takes a share, or the share is kept for a job. It may also have `spare`: cores that suspended runs have lent
    /// and no run has now, and what jobs hold with which it shares.
    ///
    /// # Errors
    /// The resources that were not free.
    pub(crate) fn take(&mut self, run: RunId, share: &NodeShare, spare: &Spare) -> Result<(), String> {
        let cores = take_out(&mut self.free_cores, &share.cores, &spare.cores);
        let gpus = take_out(&mut self.free_gpus, &share.gpus, &spare.gpus);
        let memory_bytes = share.memory_bytes.saturating_sub(self.free_memory_bytes);
        self.free_memory_bytes = self.free_memory_bytes.saturating_sub(share.memory_bytes);
        if share.exclusive {
            self.exclusive = Some(run);
        }
        self.runs.insert(run);
        let name = &self.spec.name;
        let taken = |what: &str, all: &dyn fmt::Display, missing: u64| {
            Err(format!("node {name}: run {run} takes {what} {all}, of which {missing} are not free"))
        };
        match (cores, gpus, memory_bytes) {
            (0, 0, 0) => Ok(()),
            (0, 0, missing) => taken("bytes of memory,", &share.memory_bytes, missing),
            (0, missing, _) => taken("GPUs", &share.gpus, missing),
            (missing, ..) => taken("cores", &share.cores, missing),
        }
    }

    /// Removes what runs hold from what is free.
    pub(crate) fn keep(&mut self, held: &Spare) {
        if held.runs.is_empty() {
            return;
        }
        self.free_cores = self.free_cores.difference(&held.cores);
        self.free_gpus = self.free_gpus.difference(&held.gpus);
        self.exclusive = self.exclusive.or(held.exclusive);
    }

    /// A run gives back a share. If it lends cores, other runs may have them, or they may be free.
    ///
    /// # Errors
    /// The resources that were free already, or do not belong to the node.
    pub(crate) fn give_back(&mut self, run: RunId, share: &NodeShare, lends_cores: bool) -> Result<(), String> {
        let cores = put_back(&mut self.free_cores, &share.cores);
        let gpus = put_back(&mut self.free_gpus, &share.gpus);
        self.free_memory_bytes = self.free_memory_bytes.saturating_add(share.memory_bytes);
        if self.exclusive == Some(run) {
            self.exclusive = None;
        }
        self.runs.remove(&run);
        let (name, spec) = (&self.spec.name, &self.spec);
        let returned = |what: &str, all: &dyn fmt::Display, known: u64| {
            Err(format!("node {name}: run {run} gives back {what} {all}, of which {known} were free"))
        };
        if cores > 0 && !lends_cores {
            return returned("cores", &share.cores, cores);
        }
        if gpus > 0 {
            return returned("GPUs", &share.gpus, gpus);
        }
        let has_cores = within(&self.free_cores, spec.cores) && within(&self.free_gpus, gpu_count(spec));
        if has_cores && self.free_memory_bytes <= spec.memory_bytes {
            return Ok(());
        }
        let (free, all) = (self.free_memory_bytes, spec.memory_bytes);
        Err(format!(
            "node {name}: run {run} gives back cores {} and {} bytes of memory; then cores {} of {} are free, GPUs {} of {}, and \
             {free} bytes of {all}",
            share.cores,
            share.memory_bytes,
            self.free_cores,
            spec.cores,
            self.free_gpus,
            spec.gpus.len(),
        ))
    }

    /// Like [`Node::give_back`], for part of a share; the run keeps the rest, if any.
    ///
    /// # Errors
    /// As [`Node::give_back`].
    pub(crate) fn give_back_part(
        &mut self,
        run: RunId,
        part: &NodeShare,
        (lends_cores, keeps_rest): (bool, bool),
    ) -> Result<(), String> {
        let exclusive = self.exclusive;
        let given_back = self.give_back(run, part, lends_cores);
        if keeps_rest {
            self.exclusive = exclusive;
            self.runs.insert(run);
        }
        given_back
    }
}

/// Removes numbers from the free ones; returns how many were neither free nor spare.
fn take_out(free: &mut IndexSet, taken: &IndexSet, spare: &IndexSet) -> u64 {
    if taken.is_empty() {
        return 0;
    }
    let spared = if spare.is_empty() { 0 } else { taken.difference(free).intersection(spare).len() };
    let before = free.len();
    *free = free.difference(taken);
    taken.len() - (before - free.len()) - spared
}

/// Adds numbers to the free ones; returns how many were free already.
fn put_back(free: &mut IndexSet, returned: &IndexSet) -> u64 {
    if returned.is_empty() {
        return 0;
    }
    let before = free.len();
    *free = free.union(returned);
    returned.len() - (free.len() - before)
}
