//! What jobs have in use, component by component.

use crate::model::{ComponentDemand, Demand, Holder};
use muster_domain::accounts::{Charge, Spending};
use muster_schemas::resources::{ComponentPlacement, Placement};
use std::sync::Arc;

/// Resources that jobs use together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub jobs: u64,
    pub nodes: u64,
    pub cores: u64,
    pub gpus: u64,
    pub memory_bytes: u64,
    /// The longest time that one component may last, [`u64::MAX`] without a limit. It is not summed up.
    pub walltime_seconds: u64,
}

/// The resources that each component of a job uses.
pub(crate) type Uses = Vec<Usage>;

/// For each component of a job, whether the limits allow each way to serve it.
pub(crate) type Ways = Vec<Vec<bool>>;

/// Whether a limit shuts a way: an equal job of another user may have more ways open.
pub(crate) fn is_one_shut(ways: Option<&[Vec<bool>]>) -> bool {
    ways.is_some_and(|ways| ways.iter().flatten().any(|open| !open))
}

impl Usage {
    /// The resources that the components of one job use with this placement.
    pub fn of(placement: &Placement, demand: &Demand) -> Uses {
        let mut uses: Uses = placement.components.iter().map(Self::of_component).collect();
        for ((usage, placed), component) in uses.iter_mut().zip(&placement.components).zip(&demand.components) {
            let way = component.alternatives.get(placed.alternative as usize);
            let seconds = way.and_then(|way| way.walltime_seconds).map(|seconds| demand.own_seconds(seconds));
            usage.walltime_seconds = seconds.unwrap_or(u64::MAX);
        }
        uses
    }

    /// The lesser of two for each amount.
    pub fn least(self, other: Self) -> Self {
        Self {
            jobs: self.jobs.min(other.jobs),
            nodes: self.nodes.min(other.nodes),
            cores: self.cores.min(other.cores),
            gpus: self.gpus.min(other.gpus),
            memory_bytes: self.memory_bytes.min(other.memory_bytes),
            walltime_seconds: self.walltime_seconds.min(other.walltime_seconds),
        }
    }

    /// A component that has ended while others continue holds nothing, and no longer counts as a job.
    fn of_component(placed: &ComponentPlacement) -> Self {
        let mut usage = Self { jobs: u64::from(!placed.shares.is_empty()), ..Self::default() };
        for share in &placed.shares {
            usage.nodes += 1;
            usage.cores += share.cores.len();
            usage.gpus += share.gpus.len();
            usage.memory_bytes = usage.memory_bytes.saturating_add(share.memory_bytes);
        }
        usage
    }

    /// The resources that components of a running job would use in addition.
    pub fn of_growth(added: &Placement) -> Uses {
        let of_component = |placed| Self { jobs: 0, ..Self::of_component(placed) };
        added.components.iter().map(of_component).collect()
    }

    /// The use of budgets by the end of the walltime.
    pub fn spending(&self) -> Spending {
        Spending::of(self.cores, self.nodes, self.gpus, self.walltime_seconds.saturating_mul(1_000))
    }

    pub fn add(&mut self, other: &Self) {
        self.jobs += other.jobs;
        self.nodes += other.nodes;
        self.cores += other.cores;
        self.gpus += other.gpus;
        self.memory_bytes = self.memory_bytes.saturating_add(other.memory_bytes);
    }

    pub fn subtract(&mut self, other: &Self) {
        self.jobs = self.jobs.saturating_sub(other.jobs);
        self.nodes = self.nodes.saturating_sub(other.nodes);
        self.cores = self.cores.saturating_sub(other.cores);
        self.gpus = self.gpus.saturating_sub(other.gpus);
        self.memory_bytes = self.memory_bytes.saturating_sub(other.memory_bytes);
    }
}

/// A component of a job, with what it uses or would use.
#[derive(Clone, Copy)]
pub(super) struct Part<'p> {
    pub holder: &'p Holder,
    pub number: usize,
    pub demand: &'p ComponentDemand,
    pub usage: &'p Usage,
}

impl Part<'_> {
    pub fn account(&self) -> Option<&Arc<str>> {
        self.holder.charges.get(self.number).map_or(&self.holder.account, |charge| &charge.account).as_ref()
    }

    pub fn charge(&self) -> Charge {
        Charge {
            account: self.account().cloned(),
            user: self.holder.user.clone(),
            class: self.holder.charges.get(self.number).and_then(|charge| charge.class.clone()),
            queue: self.demand.queue.clone(),
        }
    }
}

pub(super) fn parts<'p>(holder: &'p Holder, demand: &'p Demand, uses: &'p [Usage]) -> impl Iterator<Item = Part<'p>> {
    let components = demand.components.iter().zip(uses).enumerate();
    components.map(move |(number, (demand, usage))| Part { holder, number, demand, usage })
}

/// The first component of a job, with what it uses.
pub(super) fn first_part<'p>(holder: &'p Holder, demand: &'p Demand, usage: &'p Usage) -> Option<Part<'p>> {
    demand.components.first().map(|demand| Part { holder, number: 0, demand, usage })
}

/// What a job would use, summed up by counter. Few jobs have many components, and those mostly count together.
#[derive(Default)]
pub(super) struct Wanted<C>(pub Vec<(C, Usage)>);

impl<C: PartialEq> Wanted<C> {
    pub fn add(&mut self, counter: C, usage: &Usage) {
        match self.0.iter_mut().find(|(known, _)| *known == counter) {
            Some((_, sum)) => sum.add(usage),
            None => self.0.push((counter, *usage)),
        }
    }
}
