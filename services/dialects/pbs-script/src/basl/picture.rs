//! A state as BaSL programs see it.

use crate::site::shown_load;
use jiff::tz::TimeZone;
use muster_basl::{Amount, Amounts, Job, Node, Queue, Server, Snapshot};
use muster_pbs_plan::{
    moment::Moment,
    resources::Resources,
    state_file::{JobState, NodeState, QueueState, StateFile},
};

/// The snapshot of a cycle (PBS-X-08).
pub fn snapshot(state: &StateFile) -> Snapshot {
    let zone = state.tz.as_deref().and_then(|name| TimeZone::get(name).ok()).unwrap_or(TimeZone::UTC);
    let server = &state.server;
    Snapshot {
        server: Server {
            name: server.name.clone(),
            default_queue: server.default_queue.clone(),
            max_running: signed(server.max_running),
            max_user_run: signed(server.max_user_run),
            max_group_run: signed(server.max_group_run),
            resources_available: amounts(&server.resources_available),
            ..Server::default()
        },
        queues: state.queues.iter().map(queue).collect(),
        nodes: state.nodes.iter().map(node).collect(),
        jobs: state.jobs.iter().map(|one| job(one, &zone)).collect(),
        ..Snapshot::default()
    }
}

fn signed(number: Option<u64>) -> Option<i64> {
    number.map(|number| i64::try_from(number).unwrap_or(i64::MAX))
}

fn amounts(resources: &Resources) -> Amounts {
    resources.shown().map(|(name, value)| (name.to_owned(), Amount::Text(value))).collect()
}

fn queue(queue: &QueueState) -> Queue {
    Queue {
        name: queue.name.clone(),
        queue_type: queue.kind.clone(),
        started: queue.started,
        priority: queue.priority,
        max_running: signed(queue.max_running),
        max_user_run: signed(queue.max_user_run),
        max_group_run: signed(queue.max_group_run),
        resources_available: amounts(&queue.resources_available),
        ..Queue::default()
    }
}

fn node(node: &NodeState) -> Node {
    Node {
        name: node.name.clone(),
        ts: node.ts,
        state: node.state.clone(),
        ncpus: node.ncpus.map(i64::from),
        physmem: node.physmem.clone().map(Amount::Text),
        arch: node.arch.clone(),
        loadave: node.loadave.and_then(|load| shown_load(load).parse().ok()),
        properties: (!node.properties.is_empty()).then(|| node.properties.join(",")),
        ..Node::default()
    }
}

fn job(job: &JobState, zone: &TimeZone) -> Job {
    let seconds = |moment: Option<Moment>| moment.and_then(|moment| moment.instant(zone)).map(|time| time.as_second());
    Job {
        id: job.id.clone(),
        name: job.name.clone(),
        owner: job.owner.clone(),
        queue: Some(job.queue.clone()),
        user: Some(job.user.clone()),
        group: job.group.clone(),
        state: format!("{:?}", job.state),
        priority: job.priority,
        rerunnable: job.rerunnable,
        interactive: job.interactive,
        ctime: seconds(job.ctime),
        qtime: seconds(job.qtime),
        stagein: job.stagein.clone(),
        stageout: job.stageout.clone(),
        request: amounts(&job.request),
        used: amounts(&job.used),
        ..Job::default()
    }
}
