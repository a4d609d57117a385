//! When the copying of files begins, and what its result means (PBS-G-01 to PBS-G-04, PBS-G-06).

use crate::{
    copies::CopyStage,
    decide::{Access, Decision, conflict, not_found},
    jobs::Job,
    nodes::Node,
    requests::{self, fits},
    state::State,
    validate,
};
use muster_schemas::{
    JobId, NodeId, RunId, Sequence, Timestamp,
    command::Refusal,
    copies::{CopyDirection, CopyReport},
    event::{Event, StopReason},
    job::{Holds, Outcome, Usage},
    resources::Alternative,
};

/// The longest reason of a failure that is kept, in bytes.
const MAX_REASON_BYTES: usize = 1_024;

/// Adds the beginning of the copying that follows from events of one decision: a run needs files, or a job that has run is
/// over and has results to copy.
pub(crate) fn add(state: &State, events: &mut Vec<Event>) {
    if !events.iter().any(|event| matches!(event, Event::RunAllocated { .. } | Event::RunEnded { .. })) {
        return;
    }
    let mut ended: Option<(JobId, RunId, bool)> = None;
    let mut at = 0;
    while at < events.len() {
        let follows = match &events[at] {
            Event::RunAllocated { job: id, run, placement } => {
                let job = state.job(*id).or_else(|| state.job(id.whole()));
                let lead = placement.shares().next().map(|share| share.node);
                let waits = job.is_some_and(|job| job.waits_for_files(placement));
                lead.filter(|_| waits).map(|node| (*id, node, CopyDirection::In, Some(*run)))
            }
            Event::RunEnded { job, run, .. } => {
                let starts = |event: &Event| matches!(event, Event::RunStarted { run: started, .. } if started == run);
                let has_started = state.run(*run).is_some_and(|run| run.started.is_some());
                ended = Some((*job, *run, has_started || events.iter().any(starts)));
                None
            }
            Event::JobFinished { job: id, .. } => {
                let run = ended.filter(|(job, _, has_started)| job == id && *has_started);
                run.and_then(|(_, run, _)| results(state, *id, run)).map(|node| (*id, node, CopyDirection::Out, None))
            }
            _ => None,
        };
        at += 1;
        if let Some((job, node, direction, run)) = follows {
            events.insert(at, Event::CopyingBegan { job, node, direction, run });
            at += 1;
        }
    }
}

/// The node with results of a job to copy.
fn results(state: &State, id: JobId, run: RunId) -> Option<NodeId> {
    let job = state.job(id)?;
    let has_results = job.file_copies().is_some_and(|copies| !copies.after.is_empty());
    state.run(run)?.lead().map(|lead| lead.node).filter(|_| has_results)
}

/// Copies the files of a waiting job ahead of its start, to a node that the caller names or to one that can run it.
pub(crate) fn ahead(access: &Access, id: JobId, node: Option<&str>) -> Result<Decision, Refusal> {
    access.require_operator("copy the files of jobs ahead")?;
    let state = access.state;
    let id = state.id_meant(id);
    let job = state.job(id).ok_or_else(|| not_found(format!("job {id} does not exist")))?;
    if !job.has_files_to_come() {
        return Err(conflict(format!("job {id} has no files to copy before it starts")));
    }
    if job.array.is_some() {
        return Err(conflict(format!("job {id} is an array: the files of each task are copied when it starts")));
    }
    if !job.is_waiting() {
        return Err(conflict(format!("job {id} does not wait")));
    }
    match job.copies.as_ref().map(|copies| copies.stage) {
        None | Some(CopyStage::Wanted | CopyStage::Failed) => {}
        Some(CopyStage::Coming { .. }) => return Err(conflict(format!("the files of job {id} are being copied"))),
        Some(_) => return Err(conflict(format!("the files of job {id} are copied already"))),
    }
    let node = match node {
        Some(name) => named(state, job, name)?,
        None => chosen(state, job)?,
    };
    let direction = CopyDirection::In;
    Ok(Decision::done(vec![Event::CopyingBegan { job: id, node: node.id, direction, run: None }]))
}

fn named<'a>(state: &'a State, job: &Job, name: &str) -> Result<&'a Node, Refusal> {
    let node = state.node_by_name(name);
    let node = node.ok_or_else(|| not_found(format!("node `{}` does not exist", validate::shown(name))))?;
    if !state.takes_jobs_now(node) {
        return Err(conflict(format!("node `{}` is not in service", node.spec.name)));
    }
    match unfit(state, job, node) {
        Some(why) => Err(conflict(format!("job {} cannot run on node `{}`: {why}", job.id, node.spec.name))),
        None => Ok(node),
    }
}

/// The first node that can run the job.
fn chosen<'a>(state: &'a State, job: &Job) -> Result<&'a Node, Refusal> {
    let mut why = None;
    for node in state.nodes().filter(|node| state.takes_jobs_now(node)) {
        match unfit(state, job, node) {
            None => return Ok(node),
            Some(unfit) => why = why.or(Some(unfit)),
        }
    }
    let why = why.unwrap_or_else(|| "no node is in service".to_owned());
    Err(conflict(format!("no single node can run job {}: {why}", job.id)))
}

/// Why a job cannot run as a whole on a node, if it cannot.
fn unfit(state: &State, job: &Job, node: &Node) -> Option<String> {
    let [only] = &*job.components else { return Some("it has several components".to_owned()) };
    let wants = |alternative: &Alternative| requests::minimum_of_all(alternative, state.settings()).nodes;
    if only.shape.alternatives.iter().any(|alternative| wants(alternative) > 1) {
        return Some("it asks for several nodes".to_owned());
    }
    let mut requests = only.shape.alternatives.iter().flat_map(|alternative| &alternative.requests);
    if requests.any(|request| !request.nodes.is_empty() && !request.nodes.contains(&node.spec.name)) {
        return Some("it asks for other nodes by name".to_owned());
    }
    let bound = bound_to(&only.shape.alternatives, &node.spec.name);
    let queue = state.queue(&only.queue)?;
    if !queue.spec.nodes.is_empty() && !queue.spec.nodes.contains(&node.spec.name) {
        return Some(format!("it does not belong to queue `{}`", queue.spec.name));
    }
    fits::never_fits(state, &queue.spec, &bound)
}

/// The alternatives, with a node that each of their requests names.
pub(crate) fn bound_to(alternatives: &[Alternative], node: &str) -> Vec<Alternative> {
    let mut bound = alternatives.to_vec();
    for alternative in &mut bound {
        if alternative.requests.is_empty() {
            alternative.requests.push(Default::default());
        }
        for request in alternative.requests.iter_mut().filter(|request| request.nodes.is_empty()) {
            request.nodes.push(node.to_owned());
        }
    }
    bound
}

/// The same without it.
pub(crate) fn unbound_from(alternatives: &[Alternative], node: &str) -> Vec<Alternative> {
    let mut free = alternatives.to_vec();
    for request in free.iter_mut().flat_map(|alternative| &mut alternative.requests) {
        request.nodes.retain(|name| name != node);
    }
    free
}

/// A node has copied the files of a job, or has failed to. A repeated report, or one that nobody waits for, is accepted
/// without effect.
pub(crate) fn copied(
    access: &Access,
    id: JobId,
    copy: Sequence,
    report: CopyReport,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let node = access.require_node()?.id;
    let Some(job) = access.state.job(id) else { return Ok(Decision::done(Vec::new())) };
    let Some((_, _, direction)) = job.copying().filter(|(at, number, _)| (*at, *number) == (node, copy)) else {
        return Ok(Decision::done(Vec::new()));
    };
    let CopyReport { bytes, milliseconds, failure } = report;
    let events = match failure {
        None => vec![Event::CopyingEnded { job: id, node, direction, bytes, milliseconds }],
        Some(reason) => {
            let failure = Failure { node, direction, bytes, milliseconds, reason: &reason };
            failed(access.state, job, &failure, now)
        }
    };
    Ok(Decision::done(events))
}

/// A failure to copy.
struct Failure<'a> {
    node: NodeId,
    direction: CopyDirection,
    bytes: Option<u64>,
    milliseconds: u64,
    reason: &'a str,
}

/// A job whose files could not be copied waits: until its own time, if that is later. Its run ends, whose nodes have started
/// nothing. Results that could not be copied stay where they are.
fn failed(state: &State, job: &Job, failure: &Failure<'_>, now: Timestamp) -> Vec<Event> {
    let Failure { node, direction, bytes, milliseconds, reason } = *failure;
    let reason = reason.replace(char::is_control, " ");
    let reason = reason.get(..reason.floor_char_boundary(MAX_REASON_BYTES)).unwrap_or_default().to_owned();
    let settings = state.staging_settings();
    let later = now.plus_seconds(i64::from(settings.copy_retry_seconds()));
    let own = job.components.iter().filter_map(|component| component.extras.as_ref()?.begin).max();
    let until = (direction == CopyDirection::In).then(|| own.map_or(later, |own| own.max(later)));
    let mut events =
        vec![Event::CopyingFailed { job: job.id, node, direction, bytes, milliseconds, reason: reason.clone(), until }];
    if direction == CopyDirection::Out {
        return events;
    }
    if let Some(run) = job.run().and_then(|run| state.run(run)) {
        if run.stopping.is_some() {
            // Its end is on the way, and says what becomes of the job.
            return events;
        }
        let (job, run, outcome, usage) = (job.id, run.id, Outcome::Requeued, Usage::default());
        events.push(Event::RunEnded { job, run, last: None, outcome, usage });
        events.push(Event::JobRequeued { job, reason: StopReason::Requeued });
    }
    let most = settings.copy_failures_before_hold;
    let failures = job.copies.as_ref().map_or(0, |copies| copies.failures) + 1;
    if most > 0 && failures >= most {
        let holds = Holds { system: true, ..Holds::default() };
        let reason = format!("its files could not be copied {failures} times: {reason}");
        events.push(Event::JobHeld { job: job.id, holds, reason });
    }
    events
}

/// The copying ahead that a lost node was busy with has failed. Copying that a run waits for ends with the run, and
/// results are copied when the node is back.
pub(crate) fn node_lost(state: &State, node: NodeId, now: Timestamp) -> Vec<Event> {
    let busy = state.index.copying.get(&node).into_iter().flatten().filter_map(|id| state.job(*id));
    let ahead = busy.filter(|job| job.is_copied_ahead());
    let direction = CopyDirection::In;
    let failure = Failure { node, direction, bytes: None, milliseconds: 0, reason: "the node was lost" };
    ahead.flat_map(|job| failed(state, job, &failure, now)).collect()
}

/// Why a run may not start with this placement: its files were copied to another node.
pub(crate) fn elsewhere(state: &State, job: &Job, lead: Option<NodeId>) -> Option<String> {
    let at =
        job.files_at().filter(|at| Some(*at) != lead && job.copies.as_ref().is_some_and(|copies| copies.is_bound))?;
    Some(format!("its files were copied to node `{}`", state.node_name(at)))
}
