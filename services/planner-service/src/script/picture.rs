//! The state of the cluster in the shape that scheduling programs are shown (PBS-C-16).

use super::limits;
use crate::external::least;
use muster_domain::{
    State,
    copies::CopyStage,
    jobs::{Job, Phase, ProgramKind},
    nodes::{Node, Queue},
    runs::Run,
};
use muster_pbs_plan::{
    moment::Moment,
    resources::{Resources, Value},
    state_file::{Attributes, JobState, NodeState, QueueState, State as Letter, StateFile, load_of},
};
use muster_pbs_policy::values::Decimal;
use muster_pbs_script::state_site::moment;
use muster_schemas::{
    Timestamp,
    copies::FileCopy,
    job::WaitReason,
    resources::{Count, Level, LevelCount, NodeFilter, PropertyValue, Request, Sharing},
};
use std::collections::BTreeSet;

/// What there is. Jobs are in the order of arrival.
pub(crate) fn picture(state: &State, server: &str, now: Timestamp) -> StateFile {
    let mut jobs: Vec<&Job> = state.jobs().filter(|job| !matches!(job.phase, Phase::Finished(_))).collect();
    jobs.sort_by_key(|job| (job.queued, job.id));
    StateFile {
        server: Attributes {
            name: Some(server.to_owned()),
            default_queue: Some(state.settings().default_queue.clone()).filter(|name| !name.is_empty()),
            ..limits::of_server(state.settings())
        },
        queues: state.queues().map(queue).collect(),
        nodes: state.nodes().map(|one| node(state, one, now)).collect(),
        jobs: jobs.into_iter().map(|one| job_at(state, one, now)).collect(),
        ..StateFile::at(time(now))
    }
}

fn time(time: Timestamp) -> Moment {
    moment(time.0.div_euclid(1_000_000))
}

pub(super) fn queue(queue: &Queue) -> QueueState {
    QueueState {
        name: queue.spec.name.clone(),
        kind: Some(if queue.spec.route.is_some() { "route" } else { "execution" }.into()),
        started: Some(queue.spec.started),
        enabled: Some(queue.spec.enabled),
        priority: Some(queue.spec.priority),
        ..limits::of_queue(&queue.spec)
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
    let text = |name: &str| match node.spec.properties.get(name)? {
        PropertyValue::Text(text) => Some(text.clone()),
        PropertyValue::Number(number) => Some(number.to_string()),
        PropertyValue::Flag(_) => None,
    };
    let load = |name: &str| text(name).as_deref().and_then(Decimal::parse);
    let others = node.spec.properties.keys().filter_map(|name| Some((name.clone(), text(name)?)));
    NodeState {
        name: node.spec.name.clone(),
        // Several jobs can share a node as long as cores are free.
        ts: true,
        state: Some(word.into()),
        ncpus: Some(node.spec.cores),
        physmem: Some(format!("{}kb", node.spec.memory_bytes / 1024)),
        arch: text("arch"),
        properties: flags.map(|(name, _)| name.clone()).collect(),
        loadave: state.node_load(node.id).map(|load| load_of(load.millionths)),
        systime: state.node_load(node.id).and_then(|load| load.system_percent),
        ideal_load: load("ideal_load"),
        max_load: load("max_load"),
        answers: others.collect(),
        ..NodeState::default()
    }
}

/// A job that is not over, as of the last record.
pub(super) fn job_now(state: &State, job: &Job) -> JobState {
    job_at(state, job, state.time())
}

fn job_at(state: &State, job: &Job, now: Timestamp) -> JobState {
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
        state: letter(state, job),
        qtime: Some(time(job.queued)),
        priority: Some(lead.priority),
        request: request(state, job),
        interactive: Some(lead.program == ProgramKind::None),
        used: run.map(|run| used(run, now)).unwrap_or_default(),
        started: run.map(|run| time(run.allocated)),
        nodes: nodes.unwrap_or_default(),
        name: Some(job.name.to_string()),
        owner: Some(job.owner.user.clone()),
        ctime: Some(time(job.submitted)),
        rerunnable: Some(job.extras.as_ref().is_some_and(|extras| extras.requeue.on_node_lost)),
        substate: substate(job).map(str::to_owned),
        stagein: job.file_copies().and_then(|copies| files(&copies.before)),
        stageout: job.file_copies().and_then(|copies| files(&copies.after)),
        comment: comment(job),
        ..JobState::default()
    }
}

/// What a run has used so far, as far as it is known: the rest is only known at its end.
fn used(run: &Run, now: Timestamp) -> Resources {
    let seconds = run.started.map(|started| u64::try_from(now.micros_since(started) / 1_000_000).unwrap_or(0));
    Resources(seconds.map(|seconds| ("walltime".to_owned(), Value::Number(seconds))).into_iter().collect())
}

fn letter(state: &State, job: &Job) -> Letter {
    match &job.phase {
        Phase::Active(run) if state.run(*run).is_some_and(|run| run.stopping.is_some()) => Letter::E,
        Phase::Active(_) => Letter::R,
        Phase::Settling | Phase::Finished(_) => Letter::E,
        // All tasks of the array have started.
        Phase::Waiting if !job.is_waiting() => Letter::R,
        Phase::Waiting => match state.gate_reason_of_ordered(job) {
            // A job that waits in a route queue is queued there.
            None | Some(WaitReason::NotPassedOn) => Letter::Q,
            Some(WaitReason::Held(_)) => Letter::H,
            Some(_) => Letter::W,
        },
    }
}

/// What the program has said about a job that waits, or else why it waits.
fn comment(job: &Job) -> Option<String> {
    Some(match job.planner_reason.as_deref()? {
        WaitReason::ExternalPlanner(text) => text.clone(),
        reason => reason.to_string(),
    })
}

/// How far the files of a job are (PBS-G-05).
fn substate(job: &Job) -> Option<&'static str> {
    job.file_copies().filter(|copies| !copies.before.is_empty())?;
    Some(match job.copies.as_ref()?.stage {
        CopyStage::Wanted => "PRESTAGEIN",
        CopyStage::Coming { run: None, .. } => "STAGEIN",
        CopyStage::Coming { run: Some(_), .. } => "STAGEGO",
        CopyStage::In { .. } if job.is_waiting() => "STAGECMP",
        CopyStage::Failed => "STAGEFAIL",
        CopyStage::Leaving { .. } => "STAGEOUT",
        _ => return None,
    })
}

/// The files of a list, as `stagein` and `stageout` have them.
fn files(copies: &[FileCopy]) -> Option<String> {
    let one = |FileCopy { local, host, remote }: &FileCopy| match host.is_empty() {
        true => format!("{local}@{remote}"),
        false => format!("{local}@{host}:{remote}"),
    };
    let all: Vec<String> = copies.iter().map(one).collect();
    (!all.is_empty()).then(|| all.join(","))
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
        if let Some(seconds) = alternative.cpu_seconds {
            add("cput", seconds);
        }
    }
    if let Some(seconds) = walltime {
        request.0.insert("walltime".into(), Value::Number(seconds));
    }
    let alternatives = job.components.iter().filter_map(|component| component.shape.alternatives.first());
    let nodes: Option<Vec<String>> = alternatives.flat_map(|alternative| &alternative.requests).map(nodes_of).collect();
    if let Some(nodes) = nodes.filter(|nodes| !nodes.is_empty()) {
        request.0.insert("nodes".into(), Value::Text(nodes.join("+")));
    }
    request
}

/// A request for nodes as `-l nodes` has it: their number or names, the processors of each unless the job has whole nodes, and
/// their properties. `None` for a request that does not count nodes.
fn nodes_of(request: &Request) -> Option<String> {
    let [LevelCount { level: Level::Node, count: Count::Range { min, .. } }] = request.path.as_slice() else {
        return None;
    };
    let processors = request.tasks_per_node.filter(|_| request.sharing != Sharing::WholeNodes);
    let mut more = processors.map(|count| format!(":ppn={count}")).unwrap_or_default();
    let properties = match &request.filter {
        None => &[][..],
        Some(NodeFilter::All(all)) => all,
        Some(one) => std::slice::from_ref(one),
    };
    for property in properties {
        if let NodeFilter::Has(name) = property {
            more.push(':');
            more.push_str(name);
        }
    }
    let heads = match request.nodes.is_empty() {
        true => vec![min.to_string()],
        false => request.nodes.clone(),
    };
    Some(heads.iter().map(|head| format!("{head}{more}")).collect::<Vec<_>>().join("+"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PBS-X-09
    #[test]
    fn requests_for_nodes_are_shown_in_their_words() {
        let nodes = |count| Request {
            path: vec![LevelCount { level: Level::Node, count: Count::exactly(count) }],
            tasks_per_node: Some(2),
            ..Request::default()
        };
        let has = |name: &str| NodeFilter::Has(name.into());
        let shown = |request: Request| nodes_of(&request);
        assert_eq!(shown(nodes(3)).as_deref(), Some("3:ppn=2"));
        assert_eq!(shown(Request { sharing: Sharing::WholeNodes, ..nodes(3) }).as_deref(), Some("3"));
        let big = Request { filter: Some(NodeFilter::All(vec![has("big"), has("fast")])), ..nodes(1) };
        assert_eq!(shown(big).as_deref(), Some("1:ppn=2:big:fast"));
        let named = Request { nodes: vec!["n1".into(), "n7".into()], filter: Some(has("big")), ..nodes(2) };
        assert_eq!(shown(named).as_deref(), Some("n1:ppn=2:big+n7:ppn=2:big"));
        assert_eq!(shown(Request { tasks: Some(4), ..Request::default() }), None);
    }
}
