//! A machine of one node whose cores are all alike, as in simulations of traces: only counts matter.

use super::{Search, fits_any_sharing, serves_kind};
use crate::{machine::Window, model::Demand};
use muster_schemas::resources::{ComponentPlacement, IndexSet, NodeShare, Placement};

impl Search<'_> {
    /// Cores and duration, if the machine is one node and the demand asks only for cores of it.
    pub fn as_pool(&self, demand: &Demand) -> Option<(i32, i64)> {
        let ([node], [component]) = (self.machine.nodes(), &demand.components[..]) else { return None };
        let [alternative] = &component.alternatives[..] else { return None };
        let [request] = &alternative.requests[..] else { return None };
        let only_cores = request.path.is_empty()
            && request.least_nodes.is_none()
            && request.memory.is_none()
            && self.default_memory_per_core_bytes.is_none()
            && request.gpus.is_none()
            && request.tasks_per_node.is_none()
            && alternative.licences.is_empty()
            && component.reservation.is_none()
            && node.is_always_open()
            && fits_any_sharing(alternative)
            && serves_kind(node, self.queue_nodes(component), alternative);
        let cores = u64::from(request.tasks.unwrap_or(1).max(1)) * u64::from(request.cpus_per_task.max(1));
        let seconds = i64::try_from(alternative.walltime_seconds?).ok()?;
        let micros = seconds.checked_mul(1_000_000)?;
        let cores = i32::try_from(cores).ok()?;
        only_cores.then_some((cores, micros))
    }

    /// On a pool the cores are all alike, so nothing has to be chosen.
    pub(super) fn on_pool(&self, demand: &Demand, cores: i32, window: Window) -> Option<Placement> {
        let node = &self.machine.nodes()[0];
        let free = node.least_in(window);
        if free.cores < cores || free.exclusive < 0 {
            return None;
        }
        let request = demand.components[0].alternatives[0].requests.first()?;
        let share = NodeShare {
            node: node.id,
            cores: IndexSet::first_n(u32::try_from(cores).ok()?),
            gpus: IndexSet::new(),
            memory_bytes: 0,
            tasks: request.tasks.unwrap_or(1).max(1),
            exclusive: false,
        };
        Some(Placement { components: vec![ComponentPlacement { alternative: 0, shares: vec![share] }] })
    }
}
