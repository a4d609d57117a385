//! Running jobs of each holder, compared with the limits.

use super::World;
use muster_domain::requests::minimum;
use muster_planner::model::{Demand, Holder};
use muster_schemas::{
    cluster::{ClusterSettings, QueueSpec},
    policy::{Limit, LimitPer, Policy},
    resources::{Alternative, Placement},
};

/// A job that runs or starts in this plan, as limits see it: each component counts as one job (SL-L-01).
#[derive(Clone, Debug)]
pub struct Counted {
    holder: Holder,
    parts: Vec<Part>,
}

/// A component: its queue, and its numbers of jobs, nodes, cores and GPUs.
#[derive(Clone, Debug)]
struct Part {
    queue: String,
    amounts: [u64; 4],
}

impl Counted {
    pub fn new(holder: &Holder, demand: &Demand, placement: &Placement) -> Self {
        let parts = demand.components.iter().zip(&placement.components).map(|(component, placed)| {
            let nodes = placed.shares.len() as u64;
            let cores = placed.shares.iter().map(|share| share.cores.len()).sum();
            let gpus = placed.shares.iter().map(|share| share.gpus.len()).sum();
            Part { queue: component.queue.to_string(), amounts: [1, nodes, cores, gpus] }
        });
        Self { holder: holder.clone(), parts: parts.collect() }
    }

    /// The minimum of a job: the least of each amount over the alternatives of a component.
    pub fn least(holder: &Holder, demand: &Demand) -> Self {
        let all = demand.components.iter().map(|component| &component.alternatives[..]);
        Self::of_ways(holder, demand, all)
    }

    /// The same if a component is served by this alternative.
    pub fn in_way(holder: &Holder, demand: &Demand, number: usize, way: usize) -> Self {
        let ways = demand.components.iter().enumerate().map(|(other, component)| match other == number {
            true => &component.alternatives[way..=way],
            false => &component.alternatives[..],
        });
        Self::of_ways(holder, demand, ways)
    }

    fn of_ways<'d>(holder: &Holder, demand: &Demand, ways: impl Iterator<Item = &'d [Alternative]>) -> Self {
        let parts = demand.components.iter().zip(ways).map(|(component, ways)| {
            let each: Vec<[u64; 4]> = ways.iter().map(amounts_of).collect();
            let least = |which| each.iter().map(|amounts: &[u64; 4]| amounts[which]).min().expect("there is a way");
            Part { queue: component.queue.to_string(), amounts: [least(0), least(1), least(2), least(3)] }
        });
        Self { holder: holder.clone(), parts: parts.collect() }
    }

    fn sum(&self, which: usize, counts: impl Fn(&Holder, &Part) -> bool) -> u64 {
        let counted = self.parts.iter().filter(|part| counts(&self.holder, part));
        counted.map(|part| part.amounts[which]).sum()
    }
}

/// The minimum of an alternative.
fn amounts_of(way: &Alternative) -> [u64; 4] {
    let mut amounts = [1, 0, 0, 0];
    for request in &way.requests {
        let least = minimum(request, &ClusterSettings::default());
        for (amount, more) in amounts[1..].iter_mut().zip([least.nodes, least.cores, least.gpus]) {
            *amount += more;
        }
    }
    amounts
}

/// All running jobs.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    pub all: Vec<Counted>,
}

impl Usage {
    pub fn of(world: &World) -> Self {
        Self { all: world.runs.values().map(|run| Counted::new(&run.holder, &run.demand, &run.placement)).collect() }
    }

    /// Whether one more would exceed a limit of a queue or of the policy.
    pub fn is_full(&self, world: &World, policy: &Policy, more: &Counted) -> bool {
        world.queues.values().any(|queue| self.is_queue_full(queue, more))
            || policy.limits.iter().any(|limit| self.is_limit_reached(limit, more))
    }

    fn is_queue_full(&self, queue: &QueueSpec, more: &Counted) -> bool {
        let of_queue = |_: &Holder, part: &Part| part.queue == queue.name;
        let of_user = |holder: &Holder, part: &Part| part.queue == queue.name && holder.user == more.holder.user;
        let most = [queue.max_running_jobs, queue.max_running_jobs_per_user].map(|most| most.map(u64::from));
        self.is_exceeded(0, most[0], more, of_queue) || self.is_exceeded(0, most[1], more, of_user)
    }

    fn is_limit_reached(&self, limit: &Limit, more: &Counted) -> bool {
        let most = [limit.max_running_jobs, limit.max_nodes, limit.max_cores, limit.max_gpus];
        let subjects = more.parts.iter().filter_map(|part| subject(limit, &more.holder, part));
        subjects.into_iter().any(|wanted| {
            let counts = |holder: &Holder, part: &Part| subject(limit, holder, part).as_ref() == Some(&wanted);
            (0..most.len()).any(|which| self.is_exceeded(which, most[which], more, counts))
        })
    }

    /// Whether the running jobs and one more exceed a maximum; a job that adds nothing exceeds nothing.
    fn is_exceeded(
        &self,
        which: usize,
        most: Option<u64>,
        more: &Counted,
        counts: impl Fn(&Holder, &Part) -> bool + Copy,
    ) -> bool {
        let has_part = more.parts.iter().any(|part| counts(&more.holder, part));
        let sum = || self.all.iter().map(|run| run.sum(which, counts)).sum::<u64>() + more.sum(which, counts);
        has_part && most.is_some_and(|most| sum() > most)
    }
}

/// The subject to which a limit counts a component; `None` if it does not apply.
fn subject(limit: &Limit, holder: &Holder, part: &Part) -> Option<String> {
    if limit.queue.as_ref().is_some_and(|queue| part.queue != *queue) {
        return None;
    }
    let subject = match limit.per {
        LimitPer::All => String::new(),
        LimitPer::User => holder.user.to_string(),
        LimitPer::Group => holder.group.to_string(),
        LimitPer::Account => holder.account.as_ref()?.to_string(),
        LimitPer::Queue => part.queue.clone(),
    };
    limit.name.as_ref().is_none_or(|name| *name == subject).then_some(subject)
}
