//! What runs of whom, against what may run.

use super::World;
use muster_domain::requests::minimum;
use muster_planner::model::{ComponentDemand, Demand, Holder};
use muster_schemas::{
    cluster::{ClusterSettings, QueueSpec},
    policy::{Limit, LimitPer, Policy},
    resources::Placement,
};

/// A job that runs or starts in this plan, as limits see it.
#[derive(Clone, Debug)]
pub struct Counted {
    holder: Holder,
    queues: Vec<String>,
    amounts: [u64; 4],
}

impl Counted {
    pub fn new(holder: &Holder, demand: &Demand, placement: &Placement) -> Self {
        let nodes = placement.shares().count() as u64;
        let cores = placement.shares().map(|share| share.cores.len()).sum();
        let gpus = placement.shares().map(|share| share.gpus.len()).sum();
        let queues = demand.components.iter().map(|component| component.queue.to_string()).collect();
        Self { holder: holder.clone(), queues, amounts: [1, nodes, cores, gpus] }
    }

    /// The least that a job comes to, by its first alternatives.
    pub fn least(holder: &Holder, demand: &Demand) -> Self {
        let settings = ClusterSettings::default();
        let mut amounts = [1, 0, 0, 0];
        let first = |component: &ComponentDemand| component.alternatives[0].requests.clone();
        for request in demand.components.iter().flat_map(first) {
            let least = minimum(&request, &settings);
            for (amount, more) in amounts[1..].iter_mut().zip([least.nodes, least.cores, least.gpus]) {
                *amount += more;
            }
        }
        let queues = demand.components.iter().map(|component| component.queue.to_string()).collect();
        Self { holder: holder.clone(), queues, amounts }
    }

    fn is_in(&self, queue: &str) -> bool {
        self.queues.iter().any(|own| own == queue)
    }
}

/// All that run.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    pub all: Vec<Counted>,
}

impl Usage {
    pub fn of(world: &World) -> Self {
        Self { all: world.runs.values().map(|run| Counted::new(&run.holder, &run.demand, &run.placement)).collect() }
    }

    /// Whether one more would be more than a queue or the policy allows.
    pub fn is_full(&self, world: &World, policy: &Policy, more: &Counted) -> bool {
        let queues = world.queues.values().filter(|queue| more.is_in(&queue.name));
        let mut of_queues = queues.map(|queue| self.is_queue_full(queue, more));
        of_queues.any(|full| full) || policy.limits.iter().any(|limit| self.is_limit_reached(limit, more))
    }

    fn is_queue_full(&self, queue: &QueueSpec, more: &Counted) -> bool {
        let of_queue = || self.all.iter().filter(|run| run.is_in(&queue.name));
        let of_user = || of_queue().filter(|run| run.holder.user == more.holder.user);
        queue.max_running_jobs.is_some_and(|most| of_queue().count() >= most as usize)
            || queue.max_running_jobs_per_user.is_some_and(|most| of_user().count() >= most as usize)
    }

    fn is_limit_reached(&self, limit: &Limit, more: &Counted) -> bool {
        let most = [limit.max_running_jobs, limit.max_nodes, limit.max_cores, limit.max_gpus];
        subjects(limit, more).into_iter().any(|subject| {
            let counted = || self.all.iter().filter(|run| subjects(limit, run).contains(&subject));
            let sum = |which: usize| counted().map(|run| run.amounts[which]).sum::<u64>() + more.amounts[which];
            (0..most.len()).any(|which| most[which].is_some_and(|most| sum(which) > most))
        })
    }
}

/// For whom a limit counts a job; nobody if it does not concern it.
fn subjects(limit: &Limit, run: &Counted) -> Vec<String> {
    if limit.queue.as_ref().is_some_and(|queue| !run.is_in(queue)) {
        return Vec::new();
    }
    let mut subjects = match limit.per {
        LimitPer::All => vec![String::new()],
        LimitPer::User => vec![run.holder.user.to_string()],
        LimitPer::Group => vec![run.holder.group.to_string()],
        LimitPer::Account => run.holder.account.iter().map(ToString::to_string).collect(),
        LimitPer::Queue => run.queues.clone(),
    };
    subjects.retain(|subject| limit.name.as_ref().is_none_or(|name| name == subject));
    subjects
}
