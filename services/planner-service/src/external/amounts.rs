//! Counts of cores, GPUs, memory and tasks from an external planner, turned into free resources of a node.

use super::view::least;
use muster_domain::State;
use muster_planner::free::FreeNode;
use muster_schemas::{
    external_planner::{ExternalShare, Least, Units},
    resources::{Alternative, IndexSet, NodeShare, Request, Sharing},
};

/// The rules for amounts that are not given.
pub(super) struct Amounts<'a> {
    least: Least,
    exclusive: bool,
    whole_nodes: bool,
    cpus_per_task: u32,
    /// The wanted models; empty if none is named.
    gpu_models: Vec<&'a str>,
}

impl<'a> Amounts<'a> {
    pub fn new(state: &State, alternative: &'a Alternative) -> Self {
        let requests = &alternative.requests;
        Self {
            least: least(alternative, state.settings()),
            exclusive: requests.iter().any(|request| request.sharing != Sharing::Shared),
            whole_nodes: requests.iter().any(|request| request.sharing == Sharing::WholeNodes),
            cpus_per_task: requests.iter().map(|request| request.cpus_per_task.max(1)).max().unwrap_or(1),
            gpu_models: requests.iter().flat_map(Request::all_gpus).filter_map(|gpus| gpus.model.as_deref()).collect(),
        }
    }

    /// Cores and GPUs of a node, and its memory and tasks if they are given.
    pub fn share(&self, free: &FreeNode, wanted: &ExternalShare) -> Result<NodeShare, String> {
        let name = &wanted.name;
        let mut share = NodeShare {
            node: free.node,
            cores: IndexSet::new(),
            gpus: IndexSet::new(),
            memory_bytes: wanted.memory_bytes.unwrap_or(0),
            tasks: wanted.tasks.unwrap_or(0),
            exclusive: self.exclusive,
        };
        if self.whole_nodes {
            if !free.idle {
                return Err(format!("node `{name}` is not empty, and the job wants it for itself"));
            }
            share.cores = free.cores.clone().into_owned();
            share.gpus = free.gpus.clone().into_owned();
            share.memory_bytes = free.memory_bytes;
            return Ok(share);
        }
        let cores = wanted.cores.as_ref().ok_or_else(|| format!("node `{name}` is given without `cores`"))?;
        share.cores = chosen(cores, &free.cores).ok_or_else(|| lacks(name, "cores", free.cores.len()))?;
        if let Some(gpus) = &wanted.gpus {
            let of_model = self.gpus_of_models(free);
            share.gpus = chosen(gpus, &of_model).ok_or_else(|| lacks(name, "GPUs", of_model.len()))?;
        }
        Ok(share)
    }

    fn gpus_of_models(&self, free: &FreeNode) -> IndexSet {
        if self.gpu_models.is_empty() {
            return free.gpus.clone().into_owned();
        }
        let is_wanted = |gpu: &u32| {
            free.spec.gpus.get(*gpu as usize).is_some_and(|found| self.gpu_models.contains(&found.as_str()))
        };
        free.gpus.iter().filter(is_wanted).collect()
    }

    /// Adds memory and tasks to the shares for which they are not given.
    pub fn complete(&self, shares: &mut [NodeShare], wanted: &[ExternalShare]) {
        let all_cores: u64 = shares.iter().map(|share| share.cores.len()).sum();
        let said: u32 = wanted.iter().fold(0, |sum: u32, share| sum.saturating_add(share.tasks.unwrap_or(0)));
        let mut open_tasks = u32::try_from(self.least.tasks).unwrap_or(u32::MAX).saturating_sub(said);
        for (share, wanted) in shares.iter_mut().zip(wanted) {
            if wanted.memory_bytes.is_none() && !self.whole_nodes {
                let part = u128::from(self.least.memory_bytes) * u128::from(share.cores.len());
                let part = part.div_ceil(u128::from(all_cores.max(1)));
                share.memory_bytes = u64::try_from(part).unwrap_or(u64::MAX);
            }
            if wanted.tasks.is_none() {
                let room = u32::try_from(share.cores.len()).unwrap_or(u32::MAX) / self.cpus_per_task;
                share.tasks = room.min(open_tasks);
                open_tasks -= share.tasks;
            }
        }
    }
}

/// The named units, if they are free.
fn chosen(units: &Units, free: &IndexSet) -> Option<IndexSet> {
    match units {
        Units::Count(count) => (free.len() >= u64::from(*count)).then(|| free.smallest(u64::from(*count))),
        Units::List(list) => free.contains_all(list).then(|| list.clone()),
    }
}

fn lacks(name: &str, what: &str, free: u64) -> String {
    format!("node `{name}` does not have these {what} free, but {free}")
}
