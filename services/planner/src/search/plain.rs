//! Plain requests: each node serves as many tasks as it has room for, and the first nodes that suffice are taken.

use super::{Search, fits_any_sharing, longest, serves_kind};
use crate::{
    machine::{MachineNode, Wanted, Window},
    model::{ComponentDemand, Demand},
    place::Enough,
};
use muster_schemas::resources::Alternative;

/// A plain request of a component.
#[derive(Clone, Copy)]
pub(crate) struct Plain<'r> {
    pub component: &'r ComponentDemand,
    pub alternative: &'r Alternative,
    pub enough: Enough<'r>,
    /// How long the component holds its resources.
    pub walltime_seconds: Option<u64>,
}

impl<'r> Plain<'r> {
    /// The request of a job with one component, or of its chosen alternative, if it is a plain one.
    pub fn of(search: &Search, demand: &'r Demand, choice: Option<u32>) -> Option<Self> {
        let [component] = &demand.components[..] else { return None };
        let number = choice.or((component.alternatives.len() == 1).then_some(0))?;
        let alternative = component.alternatives.get(number as usize)?;
        let enough = Enough::of(alternative, search.default_memory_per_core_bytes)?;
        Some(Self { component, alternative, enough, walltime_seconds: alternative.walltime_seconds })
    }

    /// The requests of all components, if each has a plain one and no other.
    pub fn of_all(search: &Search, demand: &'r Demand) -> Option<Vec<Self>> {
        let walltime_seconds = longest(demand);
        let plain = |component: &'r ComponentDemand| {
            let [alternative] = &component.alternatives[..] else { return None };
            let enough = Enough::of(alternative, search.default_memory_per_core_bytes)?;
            Some(Self { component, alternative, enough, walltime_seconds })
        };
        demand.components.iter().map(plain).collect()
    }

    /// The walltime; [`i64::MAX`] if there is none.
    pub fn walltime_micros(&self) -> i64 {
        let seconds = self.walltime_seconds.and_then(|seconds| i64::try_from(seconds).ok());
        seconds.map_or(i64::MAX, |seconds| seconds.saturating_mul(1_000_000))
    }

    /// The gaps in which a node can serve.
    pub fn wanted(&self) -> Wanted {
        Wanted::new(self.enough.least_cores(), self.walltime_micros(), !fits_any_sharing(self.alternative))
    }

    /// Whether a node has the requested kind.
    pub fn serves_kind(&self, search: &Search, node: &MachineNode) -> bool {
        node.is_for(self.component.reservation.as_deref())
            && serves_kind(node, search.queue_nodes(self.component), self.alternative)
    }

    /// Whether a node serves the component throughout a window, as far as closures and reservations go.
    pub fn serves(&self, node: &MachineNode, window: Window) -> bool {
        node.serves(window, self.component.reservation.as_deref())
    }

    /// The tasks that a node of the kind has room for throughout a window.
    pub fn room_in(&self, search: &Search, node: &MachineNode, window: Window) -> u32 {
        let enough = &self.enough;
        let per_task = i32::try_from(enough.cpus_per_task()).unwrap_or(i32::MAX);
        let Some(least) = node.least_with_cores(per_task, window) else { return 0 };
        let is_shared = fits_any_sharing(self.alternative);
        if least.exclusive < 0 || least.holders < 0 && !is_shared {
            return 0;
        }
        let of_counts =
            || enough.room_of_counts(u64::try_from(least.cores).ok()?, u64::try_from(least.memory_bytes).ok()?);
        of_counts().unwrap_or_else(|| {
            let free = node.free_in(window, search.now, false);
            free.map_or(0, |free| enough.room(&free))
        })
    }
}
