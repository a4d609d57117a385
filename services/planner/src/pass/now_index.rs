//! How much is free at this moment, so that jobs which cannot fit are found without looking at the nodes.

use crate::{
    class::Class,
    machine::{Machine, MachineNode},
    place::Enough,
};
use muster_schemas::{NodeId, Timestamp};

/// Nodes with more free cores count as having this many.
const MAX_COUNTED_CORES: usize = 1024;

/// Free cores of all nodes that take jobs now. A demand that fits by this index can still lack other resources or time.
#[derive(Clone, Debug, Default)]
pub(super) struct NowIndex {
    /// The cores of each node that are free now.
    cores: Vec<u32>,
    total: u64,
    /// How many nodes have each number of free cores, from 0 to [`MAX_COUNTED_CORES`].
    by_cores: Vec<u32>,
}

impl NowIndex {
    /// The cores that are free now.
    pub fn of(machine: &Machine, now: Timestamp) -> Self {
        let mut index = Self { cores: Vec::with_capacity(machine.nodes().len()), ..Self::default() };
        for node in machine.nodes() {
            let cores = free_cores(node, now);
            index.cores.push(cores);
            index.count(cores, 1);
        }
        index
    }

    /// Whether nothing is free at all.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The free cores of each node.
    pub fn cores(&self) -> &[u32] {
        &self.cores
    }

    /// Looks at some nodes again.
    pub fn update(&mut self, machine: &Machine, nodes: impl Iterator<Item = NodeId>, now: Timestamp) {
        for at in nodes.filter_map(|node| machine.index_of(node)) {
            let cores = free_cores(&machine.nodes()[at], now);
            let before = std::mem::replace(&mut self.cores[at], cores);
            self.count(before, -1);
            self.count(cores, 1);
        }
    }

    fn count(&mut self, cores: u32, by: i32) {
        if cores == 0 {
            return;
        }
        self.total = self.total.saturating_add_signed(i64::from(by) * i64::from(cores));
        let at = (cores as usize).min(MAX_COUNTED_CORES);
        if self.by_cores.len() <= at {
            self.by_cores.resize(at + 1, 0);
        }
        self.by_cores[at] = self.by_cores[at].saturating_add_signed(by);
    }

    /// Whether a job of the class may fit now; if not, it certainly does not.
    pub fn may_fit(&self, class: &Class) -> bool {
        if class.demand.sharing.is_some() {
            // It may have what is not free.
            return true;
        }
        if self.total < class.least_cores {
            return false;
        }
        if self.cores.len() == 1 {
            return true;
        }
        let [component] = &class.demand.components[..] else { return true };
        let [alternative] = &component.alternatives[..] else { return true };
        let Some(enough) = Enough::of(alternative, None) else { return true };
        let per_task = enough.cpus_per_task();
        let has_large_nodes = self.by_cores.get(MAX_COUNTED_CORES).is_some_and(|count| *count > 0);
        let rooms = self.by_cores.iter().enumerate().rev().filter(|(_, count)| **count > 0);
        has_large_nodes || enough.may_fit(rooms.map(|(cores, count)| (cores as u32 / per_task, u64::from(*count))))
    }
}

fn free_cores(node: &MachineNode, now: Timestamp) -> u32 {
    // Reservations are ignored: a job may run in one.
    if !node.is_available {
        return 0;
    }
    let least = node.free_at_present(now);
    if least.exclusive < 0 { 0 } else { u32::try_from(least.cores).unwrap_or(0) }
}
