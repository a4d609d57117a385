//! The order of jobs: keys are computed for each job and compared one by one.

use super::World;
use muster_planner::model::QueuedJob;
use muster_schemas::{
    Timestamp,
    policy::{Backfill, OrderKey, Policy},
    resources::{Alternative, Count, Level, Request},
};
use std::{cmp::Ordering, collections::BTreeMap};

/// Jobs that are planned together, in their order.
pub struct Block<'w> {
    pub backfill: Backfill,
    pub jobs: Vec<&'w QueuedJob>,
}

/// The blocks in the order in which they are planned: queues with a policy of their own are blocks, and the others are
/// one block for each priority, or a single one if no queue has a policy of its own.
pub fn blocks<'w>(world: &'w World, policy: &Policy, now: Timestamp) -> Vec<Block<'w>> {
    let mut members: BTreeMap<(std::cmp::Reverse<i64>, String), Vec<&QueuedJob>> = BTreeMap::new();
    for job in world.jobs.values() {
        let lead = lead_queue(job);
        let priority = if policy.queues.is_empty() { 0 } else { queue_priority(world, job) };
        let name = if policy.queues.contains_key(lead) { lead.to_owned() } else { String::new() };
        members.entry((std::cmp::Reverse(priority), name)).or_default().push(job);
    }
    let block = |((_, name), mut jobs): ((_, String), Vec<&'w QueuedJob>)| {
        let own = policy.queues.get(&name);
        let order = own.and_then(|own| own.order.as_ref()).unwrap_or(&policy.order);
        jobs.sort_by(|one, other| compare(world, order, now, one, other));
        Block { backfill: own.and_then(|own| own.backfill).unwrap_or(policy.backfill), jobs }
    };
    members.into_iter().map(block).collect()
}

pub fn lead_queue(job: &QueuedJob) -> &str {
    &job.demand.components[0].queue
}

fn queue_priority(world: &World, job: &QueuedJob) -> i64 {
    world.queues.get(lead_queue(job)).map_or(0, |queue| queue.priority)
}

fn compare(world: &World, order: &[OrderKey], now: Timestamp, one: &QueuedJob, other: &QueuedJob) -> Ordering {
    let by_key = |key: &OrderKey| match key {
        OrderKey::QueuePriority => queue_priority(world, other).cmp(&queue_priority(world, one)),
        OrderKey::Priority => other.priority.cmp(&one.priority),
        OrderKey::Fcfs => one.arrival.cmp(&other.arrival),
        numeric => value(numeric, now, one).partial_cmp(&value(numeric, now, other)).expect("numbers"),
    };
    let ties = || (one.arrival, one.id).cmp(&(other.arrival, other.id));
    order.iter().map(by_key).find(|ordering| ordering.is_ne()).unwrap_or_else(ties)
}

/// A job without walltime counts as endless.
fn value(key: &OrderKey, now: Timestamp, job: &QueuedJob) -> f64 {
    let walltime = walltime_seconds(job).map_or(f64::INFINITY, |seconds| seconds as f64);
    let processors = processors(job) as f64;
    let wait = now.micros_since(job.arrival).max(0) as f64 / 1e6;
    match key {
        OrderKey::Spt => walltime,
        OrderKey::Saf => walltime * processors,
        OrderKey::Wfp3 => -(wait / walltime).powi(3) * processors,
        OrderKey::Unicep => -wait / (processors.max(2.0).log2() * walltime),
        other => panic!("no test uses {other:?}"),
    }
}

/// The walltime of the longest component; each counts with its first alternative.
pub fn walltime_seconds(job: &QueuedJob) -> Option<u64> {
    let of_components = job.demand.components.iter().map(|component| component.alternatives[0].walltime_seconds);
    of_components.collect::<Option<Vec<u64>>>()?.into_iter().max()
}

fn processors(job: &QueuedJob) -> u64 {
    job.demand.components.iter().map(|component| cores_of_alternative(&component.alternatives[0])).sum()
}

fn cores_of_alternative(alternative: &Alternative) -> u64 {
    if alternative.requests.is_empty() { 1 } else { alternative.requests.iter().map(cores_of_request).sum() }
}

/// The fewest cores that serve a request.
fn cores_of_request(request: &Request) -> u64 {
    let mut product = 1;
    let (mut nodes, mut cores) = (1, 1);
    for step in &request.path {
        product *= if let Count::Range { min, .. } = step.count { u64::from(min) } else { 1 };
        match step.level {
            Level::Group(_) | Level::Node => (nodes, cores) = (product, product),
            Level::Socket | Level::Core => cores = product,
            Level::Gpu => {}
        }
    }
    let tasks = request.tasks.map_or(nodes, u64::from);
    let most_on_node = request.tasks_per_node.map_or(u64::MAX, u64::from).max(1);
    cores.max(tasks * u64::from(request.cpus_per_task.max(1))).max(nodes.max(tasks.div_ceil(most_on_node)))
}
