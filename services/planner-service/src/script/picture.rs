//! The state of the cluster in the shape that scheduling programs are shown (PBS-C-16).

use crate::external::least;
use muster_domain::{
    State,
    jobs::{Job, Phase},
    nodes::{Node, Queue},
};
use muster_pbs_plan::{
    moment::Moment,
    resources::{Resources, Value},
    state_file::{Attributes, JobState, NodeState, QueueState, State as Letter, StateFile, load_of},
};
use muster_pbs_script::state_site::moment;
use muster_schemas::{Timestamp, job::WaitReason, resources::PropertyValue};
use std::collections::BTreeSet;

/// What there is. Jobs are in the order of arrival.
pub(crate) fn picture(state: &State, now: Timestamp) -> StateFile {
    let mut jobs: Vec<&Job> = state.jobs().filter(|job| !matches!(job.phase, Phase::Finished(_))).collect();
    jobs.sort_by_key(|job| (job.queued, job.id));
    let startable: BTreeSet<_> = state.waiting().map(|waiting| waiting.job.id).collect();
    StateFile {
        server: Attributes { name: Some("muster".into()), ..Attributes::default() },
        queues: state.queues().map(queue).collect(),
        nodes: state.nodes().map(|one| node(state, one, now)).collect(),
        jobs: jobs.into_iter().map(|one| job(state, one, startable.contains(&one.id))).collect(),
        ..StateFile::at(time(now))
    }
}

fn time(time: Timestamp) -> Moment {
    moment(time.0.div_euclid(1_000_000))
}

fn queue(queue: &Queue) -> QueueState {
    QueueState {
        name: queue.spec.name.clone(),
        kind: Some("execution".into()),
        started: Some(queue.spec.started),
        priority: Some(queue.spec.priority),
        max_running: queue.spec.max_running_jobs.map(Into::into),
        max_user_run: queue.spec.max_running_jobs_per_user.map(Into::into),
        ..QueueState::default()
    }
}

fn node(state: &State, node: &Node, now: Timestamp) -> NodeState {
    let word = match () {
        () if !state.takes_jobs(node) => "down",
        () if node.closure_at(now).is_some() => "offline",
        () if node.exclusive.is_some() || node.free_cores.is_empty() => "job-exclusive",
        () => "free",
    };
    let flags = node.spec.properties.iter().filter(|(_, value)| **value == PropertyValue::Flag(true));
    let arch = node.spec.properties.get("arch");
    NodeState {
        name: node.spec.name.clone(),
        // Several jobs can share a node as long as cores are free.
        ts: true,
        state: Some(word.into()),
        ncpus: Some(node.spec.cores),
        physmem: Some(format!("{}kb", node.spec.memory_bytes / 1024)),
        arch: arch.and_then(|value| if let PropertyValue::Text(text) = value { Some(text.clone()) } else { None }),
        properties: flags.map(|(name, _)| name.clone()).collect(),
        loadave: state.node_load(node.id).map(|load| load_of(load.millionths)),
        ..NodeState::default()
    }
}

fn job(state: &State, job: &Job, is_startable: bool) -> JobState {
    let lead = job.lead();
    let run = job.run().and_then(|run| state.run(run));
    let nodes = run.map(|run| {
        let names: BTreeSet<String> =
            state.held_placement(run).shares().map(|share| state.node_name(share.node).into_owned()).collect();
        names.into_iter().collect()
    });
    JobState {
        id: job.id.to_string(),
        queue: lead.queue.to_string(),
        user: job.owner.user.clone(),
        group: Some(job.owner.gid.to_string()),
        state: letter(state, job, is_startable),
        qtime: Some(time(job.queued)),
        priority: Some(lead.priority),
        request: request(state, job),
        started: run.map(|run| time(run.allocated)),
        nodes: nodes.unwrap_or_default(),
        name: Some(job.name.to_string()),
        owner: Some(job.owner.user.clone()),
        ctime: Some(time(job.submitted)),
        ..JobState::default()
    }
}

fn letter(state: &State, job: &Job, is_startable: bool) -> Letter {
    match &job.phase {
        Phase::Active(_) => Letter::R,
        Phase::Settling | Phase::Finished(_) => Letter::E,
        Phase::Waiting if is_startable => Letter::Q,
        Phase::Waiting => match state.gate_reason(job) {
            Some(WaitReason::Held(_)) => Letter::H,
            // PBS leaves jobs of a stopped queue queued, and a program may start these; muster does not.
            _ => Letter::W,
        },
    }
}

/// The request of all components together, by their first alternatives.
fn request(state: &State, job: &Job) -> Resources {
    let mut request = Resources::default();
    let mut add = |name: &str, amount: u64| {
        let sum = request.number(name).unwrap_or(0).saturating_add(amount);
        request.0.insert(name.to_owned(), Value::Number(sum));
    };
    let mut walltime = None;
    for alternative in job.components.iter().filter_map(|component| component.shape.alternatives.first()) {
        let least = least(alternative, state.settings());
        add("ncpus", least.cores);
        add("nodect", least.nodes);
        add("mem", least.memory_bytes.div_ceil(1024));
        walltime = walltime.max(alternative.walltime_seconds);
    }
    if let Some(seconds) = walltime {
        request.0.insert("walltime".into(), Value::Number(seconds));
    }
    request
}
