//! `oarstat --gantt`: what jobs held, hold and are to hold (OAR-G-18).

use super::{
    cluster::{Cluster, state},
    ended::{Ended, Failure, print},
    jobs,
    node_events::each_event,
    select,
    site::{Site, seconds},
};
use muster_client::Moment;
use muster_oar::{
    resources::state::State,
    show::{
        document::{Form, written},
        gantt::{Placed, States, document, span},
    },
};
use muster_schemas::{
    Sequence, Timestamp,
    job::JobState,
    views::{JobDetail, JobView, NodeStateWord, Timetable},
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Prints the jobs and the states of resources in a span. Without another form it is that of Perl.
pub fn shown_for(site: &mut Site, text: &str, form: Option<Form>) -> Ended {
    let now = site.now();
    let (from, to) =
        span(text, now, &site.zone).map_err(|why| Failure::new(format_args!("Bad syntax for --gantt: {why}")))?;
    let cluster = site.cluster()?;
    let views = select::listed(site, None, &JobState::ALL)?;
    let touches = |view: &&JobView| {
        let start = view.started.or(view.slot_start).or(view.predicted_start).map(seconds);
        start.is_some_and(|start| start < to) && view.ended.is_none_or(|end| seconds(end) > from)
    };
    let ids: Vec<u64> = views.iter().filter(touches).map(JobView::own_number).collect();
    let plan = site.client.timetable(None, None, Moment::Now)?;
    let details = select::by_ids(site, &ids)?;
    let placed: Vec<Placed> = details.iter().flat_map(|detail| places(detail, &plan, &cluster)).collect();
    let resources: BTreeMap<u32, String> =
        cluster.table.resources().map(|one| (one.id(), one.node().to_owned())).collect();
    // Events of this second count.
    let states = states(site, from, to.min(now.saturating_add(1)))?;
    print(&written(&document(&placed, &resources, &states, (from, to)), form.unwrap_or(Form::Dumper)));
    Ok(0)
}

/// A job's last place in time, past, current or predicted.
fn places(detail: &JobDetail, plan: &Timetable, cluster: &Cluster) -> Option<Placed> {
    let job = jobs::detailed(detail, cluster, Vec::new());
    let walltime = Some(job.walltime).filter(|walltime| *walltime > 0);
    let common = Placed {
        job: job.id,
        user: job.owner.clone(),
        queue: job.queue.clone(),
        state: job.state.word(),
        start: 0,
        stop: None,
        resources: Vec::new(),
        nodes: Vec::new(),
        is_prediction: false,
    };
    let is_waiting = matches!(detail.job.state, JobState::Queued | JobState::Held);
    match detail.runs.last().filter(|_| !is_waiting) {
        Some(run) => {
            let start = seconds(run.started.unwrap_or(run.allocated));
            let planned = walltime.map(|walltime| start.saturating_add(walltime));
            let stop = run.ended.map(seconds).or(planned);
            let mut nodes: Vec<String> = run.nodes.iter().map(|part| part.node.clone()).collect();
            nodes.dedup();
            Some(Placed { start, stop, resources: job.resources, nodes, ..common })
        }
        None => {
            let start = job.predicted_start?;
            let wait = plan.waiting.iter().find(|wait| wait.job == detail.job.id);
            let nodes = wait.map(|wait| wait.nodes.iter().map(|part| part.node.clone()).collect());
            let stop = walltime.map(|walltime| start.saturating_add(walltime));
            Some(Placed { start, stop, nodes: nodes.unwrap_or_default(), is_prediction: true, ..common })
        }
    }
}

/// The states of nodes from the begin of the span on, from the log.
fn states(site: &mut Site, from: i64, to: i64) -> Result<BTreeMap<String, States>, Failure> {
    let mut states: BTreeMap<String, States> = BTreeMap::new();
    let mut drained: BTreeSet<String> = BTreeSet::new();
    let begin = match site.client.nodes(Moment::Time(Timestamp::from_unix_seconds(from))) {
        Ok(page) if from <= to => {
            for view in &page.nodes {
                states.insert(view.spec.name.clone(), vec![(from, state(view).0)]);
                if view.state == NodeStateWord::Drained {
                    drained.insert(view.spec.name.clone());
                }
            }
            page.sequence.next()
        }
        Ok(_) => return Ok(states),
        // Nothing was known then.
        Err(error) if error.is_refusal() => Sequence(1),
        Err(error) => return Err(error.into()),
    };
    each_event(site, begin, to, |event| {
        match event.kind.as_str() {
            "drained" | "down" => drop(drained.insert(event.node.clone())),
            "resumed" => drop(drained.remove(&event.node)),
            // It reports, and still takes no jobs.
            "up" if drained.contains(&event.node) => return,
            _ => {}
        }
        if let Some(state) = after(&event.kind, &event.data) {
            states.entry(event.node.clone()).or_default().push((event.at, state));
        }
    })?;
    Ok(states)
}

/// The state of a node after an event about it.
fn after(kind: &str, data: &Value) -> Option<State> {
    let word = || data["reason"].as_str().and_then(|reason| reason.strip_prefix(super::cluster::MARK));
    match kind {
        "added" | "removed" | "asleep" => Some(State::Absent),
        "power_failed" if data["way"] == "wake" => Some(State::Suspected),
        "power_failed" => Some(State::Absent),
        "up" | "resumed" => Some(State::Alive),
        "lost" => Some(State::Suspected),
        "drained" | "down" => Some(match word() {
            Some("Drain") => State::Alive,
            Some(word) => State::named(word).unwrap_or(State::Absent),
            None => State::Absent,
        }),
        _ => None,
    }
}
