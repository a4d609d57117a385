//! Memory and GPUs that go with tasks and cores, and how much a node can hold.

use super::Part;
use crate::free::FreeNode;
use muster_schemas::resources::{Count, Gpus, IndexSet, Level, Memory, NodeShare, Per, Request, Sharing};

/// The demands of a request on each node, apart from its path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand<'r> {
    pub cpus_per_task: u32,
    pub tasks_per_node: Option<u32>,
    exclusive: bool,
    whole_nodes: bool,
    memory: Option<Memory>,
    gpus: Option<&'r Gpus>,
    /// Those of further models.
    more_gpus: &'r [Gpus],
    /// The fewest cores that serve the request: amounts for the whole request are divided by them.
    least_cores: u32,
}

impl<'r> Demand<'r> {
    pub fn new(request: &'r Request, default_memory_per_core_bytes: Option<u64>, exclusive: bool) -> Self {
        let default_memory = default_memory_per_core_bytes.map(|bytes| Memory { bytes, per: Per::Core });
        let cpus_per_task = request.cpus_per_task.max(1);
        let tasks = request.tasks.unwrap_or_else(|| least_nodes(request)).max(1);
        Self {
            cpus_per_task,
            tasks_per_node: request.tasks_per_node,
            exclusive,
            whole_nodes: request.sharing == Sharing::WholeNodes,
            memory: request.memory.or(default_memory),
            gpus: request.gpus.as_ref().filter(|gpus| gpus.count > 0),
            more_gpus: &request.more_gpus,
            least_cores: tasks.saturating_mul(cpus_per_task),
        }
    }

    /// The wanted GPUs, each model apart.
    fn wanted(&self) -> impl Iterator<Item = &'r Gpus> {
        self.gpus.into_iter().chain(self.more_gpus)
    }

    /// Puts the nodes with most GPUs first if any node may contribute them; otherwise the order stays.
    pub fn prefer(&self, nodes: &mut [&FreeNode]) {
        if self.wanted().any(is_floating) {
            nodes.sort_by_key(|node| std::cmp::Reverse(self.matching_gpus(node).len()));
        }
    }

    /// The most tasks that fit on the node.
    pub fn max_tasks(&self, node: &FreeNode) -> u32 {
        let limit = self.max_tasks_by_counts(node.cores.len(), node.memory_bytes).min(self.max_tasks_by_gpus(node));
        u32::try_from(limit).unwrap_or(u32::MAX)
    }

    /// The most tasks that fit into these cores and this memory, if the request asks for no GPUs.
    pub fn max_tasks_of(&self, cores: u64, memory_bytes: u64) -> Option<u32> {
        let fitting = || u32::try_from(self.max_tasks_by_counts(cores, memory_bytes)).unwrap_or(u32::MAX);
        self.gpus.is_none().then(fitting)
    }

    fn max_tasks_by_counts(&self, cores: u64, memory_bytes: u64) -> u64 {
        let by_cores = cores / u64::from(self.cpus_per_task);
        let by_limit = self.tasks_per_node.map_or(u64::MAX, u64::from);
        by_cores.min(by_limit).min(self.max_tasks_by_memory(memory_bytes))
    }

    fn max_tasks_by_memory(&self, memory_bytes: u64) -> u64 {
        let Some(memory) = self.memory.filter(|memory| memory.bytes > 0) else { return u64::MAX };
        let per_task = match memory.per {
            Per::Node => return if memory.bytes <= memory_bytes { u64::MAX } else { 0 },
            Per::Task => memory.bytes,
            Per::Core => memory.bytes.saturating_mul(u64::from(self.cpus_per_task)),
            Per::Request => per_cores(memory.bytes, u64::from(self.cpus_per_task), u64::from(self.least_cores)),
            Per::Gpu if self.gpus.is_none() => return u64::MAX,
            Per::Gpu => {
                let per_task = self.gpus_for(1, self.cpus_per_task);
                memory.bytes.saturating_mul(per_task.max(1))
            }
        };
        memory_bytes / per_task.max(1)
    }

    fn max_tasks_by_gpus(&self, node: &FreeNode) -> u64 {
        let of_model = |gpus: &Gpus| {
            let there_are = of_model(node, gpus).len();
            match gpus.per {
                Per::Node if there_are < u64::from(gpus.count) => 0,
                Per::Task => there_are / u64::from(gpus.count.max(1)),
                Per::Core => there_are / (u64::from(gpus.count.max(1)) * u64::from(self.cpus_per_task)),
                Per::Node | Per::Request | Per::Gpu => u64::MAX,
            }
        };
        self.wanted().map(of_model).min().unwrap_or(u64::MAX)
    }

    /// The cores of the node that can be used with the memory that each of them needs.
    pub fn usable_cores(&self, node: &FreeNode) -> IndexSet {
        match self.memory {
            Some(Memory { bytes, per: Per::Core }) if bytes > 0 => node.cores.smallest(node.memory_bytes / bytes),
            _ => node.cores.clone().into_owned(),
        }
    }

    /// The free GPUs of the wanted models.
    pub fn matching_gpus(&self, node: &FreeNode) -> IndexSet {
        let Some(first) = self.gpus else { return node.gpus.clone().into_owned() };
        self.more_gpus.iter().fold(of_model(node, first), |all, gpus| all.union(&of_model(node, gpus)))
    }

    /// GPUs that this many tasks and cores of a node need.
    fn gpus_for(&self, tasks: u32, cores: u32) -> u64 {
        self.wanted().map(|gpus| needed(gpus, tasks, cores)).fold(0, u64::saturating_add)
    }

    /// The shares of the parts, each with its memory and GPUs; `None` if a node has too little of them.
    pub fn shares(&self, parts: Vec<Part>) -> Option<Vec<NodeShare>> {
        let all_cores: u64 = parts.iter().map(|part| part.cores.len()).sum();
        let floating = |gpus: &Gpus| if is_floating(gpus) { u64::from(gpus.count) } else { 0 };
        let mut floating_gpus: Vec<u64> = self.wanted().map(floating).collect();
        let mut shares = Vec::with_capacity(parts.len());
        for part in parts {
            shares.push(self.share(part, all_cores, &mut floating_gpus)?);
        }
        floating_gpus.iter().all(|left| *left == 0).then_some(shares)
    }

    fn share(&self, part: Part, all_cores: u64, floating_gpus: &mut [u64]) -> Option<NodeShare> {
        let node = part.node;
        let cores = u32::try_from(part.cores.len()).ok()?;
        let mut of_path = u64::from(part.gpus);
        let mut gpus = IndexSet::new();
        for (wanted, left) in self.wanted().zip(floating_gpus) {
            let there_are = of_model(node, wanted);
            let fixed = needed(wanted, part.tasks, cores).max(std::mem::take(&mut of_path));
            let floating = (*left).min(there_are.len().checked_sub(fixed)?);
            *left -= floating;
            gpus = gpus.union(&there_are.smallest(fixed + floating));
        }
        if of_path > node.gpus.len() {
            return None;
        }
        gpus = gpus.union(&node.gpus.smallest(of_path));
        let memory_bytes = self.memory_for(part.tasks, part.cores.len(), gpus.len(), all_cores);
        if memory_bytes > node.memory_bytes {
            return None;
        }
        let share = NodeShare {
            node: node.node,
            cores: part.cores,
            gpus,
            memory_bytes,
            tasks: part.tasks,
            exclusive: self.exclusive,
        };
        Some(if self.whole_nodes { whole_node(share, node) } else { share })
    }

    fn memory_for(&self, tasks: u32, cores: u64, gpus: u64, all_cores: u64) -> u64 {
        let Some(memory) = self.memory else { return 0 };
        match memory.per {
            Per::Node => memory.bytes,
            Per::Task => memory.bytes.saturating_mul(u64::from(tasks)),
            Per::Core => memory.bytes.saturating_mul(cores),
            Per::Gpu => memory.bytes.saturating_mul(gpus),
            Per::Request => per_cores(memory.bytes, cores, all_cores),
        }
    }
}

/// Whether any node may contribute to a number of GPUs.
pub(super) const fn is_floating(gpus: &Gpus) -> bool {
    matches!(gpus.per, Per::Request | Per::Gpu)
}

/// The free GPUs of a wanted model on a node.
fn of_model(node: &FreeNode, gpus: &Gpus) -> IndexSet {
    let Some(model) = gpus.model.as_deref() else { return node.gpus.clone().into_owned() };
    node.gpus.iter().filter(|gpu| node.spec.gpus.get(*gpu as usize).is_some_and(|found| found == model)).collect()
}

/// How many GPUs of a model this many tasks and cores of a node need.
fn needed(gpus: &Gpus, tasks: u32, cores: u32) -> u64 {
    let units = match gpus.per {
        Per::Node => 1,
        Per::Task => tasks,
        Per::Core => cores,
        Per::Request | Per::Gpu => 0,
    };
    u64::from(gpus.count) * u64::from(units)
}

/// The portion of an amount for this many of all cores, rounded up.
fn per_cores(bytes: u64, cores: u64, all_cores: u64) -> u64 {
    let part = (u128::from(bytes) * u128::from(cores)).div_ceil(u128::from(all_cores.max(1)));
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// Everything on the node. It is idle, so all of it is free.
fn whole_node(share: NodeShare, node: &FreeNode) -> NodeShare {
    NodeShare {
        cores: node.cores.clone().into_owned(),
        gpus: node.gpus.clone().into_owned(),
        memory_bytes: node.memory_bytes,
        ..share
    }
}

/// The fewest nodes that the path allows.
fn least_nodes(request: &Request) -> u32 {
    let level = request.path.iter().find(|step| step.level == Level::Node);
    match level.map(|step| step.count) {
        Some(Count::Range { min, .. }) => min,
        _ => 1,
    }
}
