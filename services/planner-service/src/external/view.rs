//! The state as an external planner sees it.

use muster_domain::{
    State,
    jobs::{Component, Job},
    nodes::Node,
    requests,
    runs::Run,
};
use muster_planner::projection::expected_end;
use muster_schemas::{
    JobId, Timestamp,
    cluster::ClusterSettings,
    external_planner::{
        Cycle, CycleAlternative, CycleClosure, CycleComponent, CycleJob, CycleLicence, CycleNode, CycleQueue,
        CycleReservation, CycleRun, CycleShare, CycleTasks, Least, RefusedJob,
    },
    resources::{Alternative, IndexSet, Sharing},
};
use std::cmp::Reverse;

/// The jobs that wait only for limits and resources: by priority of the queue, priority, arrival.
pub(crate) fn waiting_in_order(state: &State) -> Vec<&Job> {
    let waiting = state.waiting().map(|waiting| waiting.job).filter(|job| state.gate_reason(job).is_none());
    let mut ordered: Vec<&Job> = waiting.collect();
    ordered.sort_by_cached_key(|job| {
        let lead = job.lead();
        (Reverse(queue_priority(state, job)), Reverse(lead.priority), job.queued, job.id)
    });
    ordered
}

/// Everything needed for planning, with at most this many waiting jobs.
pub(crate) fn cycle(state: &State, at: Timestamp, max_waiting: usize, refused: Vec<RefusedJob>) -> Cycle {
    let waiting = waiting_in_order(state);
    Cycle {
        seen: state.sequence(),
        at,
        max_starts: state.policy().max_starts,
        policy: state.policy().clone(),
        nodes: state.nodes().map(|node| node_view(state, node, at)).collect(),
        licences: state
            .licences()
            .map(|(name, licence)| CycleLicence { name: name.into(), total: licence.total, free: licence.free() })
            .collect(),
        queues: queues(state),
        reservations: reservations(state, at),
        running: state.runs().filter_map(|run| run_view(state, run)).collect(),
        waiting_total: waiting.len() as u64,
        waiting: waiting.into_iter().take(max_waiting).map(|job| job_view(state, job)).collect(),
        refused,
    }
}

fn queue_priority(state: &State, job: &Job) -> i64 {
    state.queue(&job.lead().queue).map_or(0, |queue| queue.spec.priority)
}

fn queues(state: &State) -> Vec<CycleQueue> {
    let queue = |queue: &muster_domain::nodes::Queue| CycleQueue {
        name: queue.spec.name.clone(),
        priority: queue.spec.priority,
        started: queue.spec.starts_jobs(),
        nodes: queue.spec.nodes.clone(),
        running: queue.running,
        max_running_jobs: queue.spec.max_running_jobs,
        max_running_jobs_per_user: queue.spec.max_running_jobs_per_user,
    };
    state.queues().map(queue).collect()
}

fn reservations(state: &State, at: Timestamp) -> Vec<CycleReservation> {
    let names = |nodes: &mut dyn Iterator<Item = muster_schemas::NodeId>| {
        nodes.map(|node| state.node_name(node).into_owned()).collect()
    };
    let reservation = |reservation: &muster_domain::reservations::Reservation| {
        let (start, end) = reservation.period(at);
        CycleReservation {
            name: reservation.spec.name.clone(),
            start,
            end,
            nodes: names(&mut reservation.nodes.iter().copied()),
        }
    };
    state.reservations().map(reservation).collect()
}

fn node_view(state: &State, node: &Node, at: Timestamp) -> CycleNode {
    let free_gpus = node.free_gpus.difference(&node.faulty_gpus());
    CycleNode {
        name: node.spec.name.clone(),
        available: state.takes_jobs(node) && node.closure_at(at).is_none(),
        cores: node.spec.cores,
        free_cores: count(&node.free_cores),
        free_core_list: node.free_cores.clone(),
        sockets: node.spec.sockets,
        gpus: node.spec.gpus.clone(),
        free_gpus: count(&free_gpus),
        free_gpu_list: free_gpus,
        memory_bytes: node.spec.memory_bytes,
        free_memory_bytes: node.free_memory_bytes,
        runs: u32::try_from(node.runs.len()).unwrap_or(u32::MAX),
        exclusive: node.exclusive.is_some(),
        properties: node.spec.properties.clone(),
        closures: node
            .closures
            .iter()
            .map(|closure| CycleClosure { from: closure.from, until: known(closure.until) })
            .collect(),
    }
}

/// A time, unless it is infinite.
fn known(time: Timestamp) -> Option<Timestamp> {
    (time < Timestamp::MAX).then_some(time)
}

fn count(set: &IndexSet) -> u32 {
    u32::try_from(set.len()).unwrap_or(u32::MAX)
}

fn run_view(state: &State, run: &Run) -> Option<CycleRun> {
    let job = state.job(run.job)?;
    let share = |share: &muster_schemas::resources::NodeShare| CycleShare {
        name: state.node_name(share.node).into_owned(),
        cores: count(&share.cores),
        gpus: count(&share.gpus),
        memory_bytes: share.memory_bytes,
        exclusive: share.exclusive,
    };
    Some(CycleRun {
        job: run.job,
        user: job.owner.user.clone(),
        group: job.owner.gid,
        account: job.lead().account.as_deref().map(str::to_owned),
        queue: job.lead().queue.to_string(),
        allocated: run.allocated,
        expected_end: known(expected_end(job, run)),
        nodes: state.held_placement(run).shares().map(share).collect(),
    })
}

fn job_view(state: &State, job: &Job) -> CycleJob {
    let lead = job.lead();
    CycleJob {
        job: job.id,
        name: job.name.to_string(),
        user: job.owner.user.clone(),
        group: job.owner.gid,
        account: lead.account.as_deref().map(str::to_owned),
        queue: lead.queue.to_string(),
        queue_priority: queue_priority(state, job),
        priority: lead.priority,
        submitted: job.submitted,
        queued: job.queued,
        tasks: tasks(state, job),
        components: job.components.iter().map(|component| component_view(state, component)).collect(),
    }
}

/// The waiting tasks of an array. A task that was started before is a separate job, and has none.
fn tasks(state: &State, job: &Job) -> Option<CycleTasks> {
    let array = job.array.as_ref()?;
    let headroom = array.max_running.map(|_| array.headroom());
    Some(CycleTasks { indices: state.startable(job, array).into_owned(), headroom })
}

fn component_view(state: &State, component: &Component) -> CycleComponent {
    let alternative = |alternative: &Alternative| CycleAlternative {
        walltime_seconds: alternative.walltime_seconds,
        licences: alternative.licences.clone(),
        least: least(alternative, state.settings()),
        exclusive: alternative.requests.iter().any(|request| request.sharing != Sharing::Shared),
        requests: alternative.requests.clone(),
        scatter: alternative.scatter,
    };
    CycleComponent {
        queue: component.queue.to_string(),
        reservation: component.reservation().map(|name| name.to_string()),
        alternatives: component.shape.alternatives.iter().map(alternative).collect(),
    }
}

/// The least that a placement of an alternative must have, by the ledger's count.
pub(crate) fn least(alternative: &Alternative, settings: &ClusterSettings) -> Least {
    let requests::Minimum { nodes, tasks, cores, gpus, memory_bytes } = requests::minimum_of_all(alternative, settings);
    Least { nodes, tasks, cores, gpus, memory_bytes }
}

/// The job of a start: for a task that has never started, its array.
pub(super) fn job_of(state: &State, id: JobId) -> Option<&Job> {
    state.job(id).or_else(|| id.index.and_then(|_| state.job(id.whole())))
}
