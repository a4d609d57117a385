//! The sizes of jobs, and their nodes.

use muster_domain::{State, jobs::Component};
use muster_schemas::resources::{Alternative, Count, Level, NodeShare, Placement, Request};

pub(crate) fn node_names(state: &State, placement: &Placement) -> Vec<String> {
    placement.nodes().map(|node| state.node_name(node).into_owned()).collect()
}

/// The size of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) nodes: u32,
    pub(crate) tasks: u32,
    pub(crate) cores: u64,
}

impl Size {
    fn plus(self, other: Self) -> Self {
        Self {
            nodes: self.nodes.saturating_add(other.nodes),
            tasks: self.tasks.saturating_add(other.tasks),
            cores: self.cores.saturating_add(other.cores),
        }
    }

    /// The holdings of a run.
    pub(crate) fn of(placement: &Placement) -> Self {
        let nodes = u32::try_from(placement.nodes().count()).unwrap_or(u32::MAX);
        Self { nodes, ..Self::of_shares(placement.shares()) }
    }

    pub(crate) fn of_shares<'a>(mut shares: impl Iterator<Item = &'a NodeShare>) -> Self {
        shares.by_ref().fold(Self::default(), |sum, share| {
            sum.plus(Self { nodes: 1, tasks: share.tasks, cores: share.cores.len() })
        })
    }

    /// The least that a job asks for, by the first alternative of each component.
    pub(crate) fn asked(components: &[Component]) -> Self {
        let first = components.iter().filter_map(|component| component.shape.alternatives.first());
        first.fold(Self::default(), |sum, alternative| sum.plus(Self::of_alternative(alternative)))
    }

    fn of_alternative(alternative: &Alternative) -> Self {
        let sizes = alternative.requests.iter().map(Self::of_request);
        sizes.reduce(Self::plus).unwrap_or(Self { nodes: 1, tasks: 1, cores: 1 })
    }

    fn of_request(request: &Request) -> Self {
        let (mut nodes, mut cores) = (1u64, None);
        let mut product = 1u64;
        for part in &request.path {
            let least = match part.count {
                Count::Range { min, .. } => min,
                Count::All | Count::Best | Count::BestHalf => 1,
            };
            product = product.saturating_mul(u64::from(least));
            match part.level {
                Level::Group(_) | Level::Node => nodes = product,
                Level::Core => cores = Some(product),
                Level::Socket | Level::Gpu => {}
            }
        }
        let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
        let tasks = request.tasks.unwrap_or(nodes);
        let for_tasks = u64::from(tasks) * u64::from(request.cpus_per_task);
        Self { nodes, tasks, cores: cores.unwrap_or(0).max(for_tasks) }
    }
}
