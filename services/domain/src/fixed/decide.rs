//! What plans decide about jobs with a fixed start.

use crate::{
    decide::conflict,
    jobs::{Job, decide::endings::given_up},
    state::State,
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    command::Refusal,
    event::{Event, JobChange, WaitingJob},
    job::{Outcome, WaitReason},
    resources::Placement,
};
use std::{collections::BTreeMap, sync::Arc};

/// The code of a job that cannot have the resources that it asks for at its time.
const NOT_AVAILABLE: &str = "[NotAvailable]";

/// The ends of the jobs to which a plan cannot promise their start, and which no plan has promised it before.
pub(crate) fn refused(state: &State, reasons: &[WaitingJob]) -> BTreeMap<JobId, Event> {
    let refused = reasons.iter().filter_map(|told| {
        let job = state.job(told.job).filter(|job| job.is_waiting() && job.gates_open() && job.slot.is_none())?;
        job.fixed_time()?;
        let WaitReason::NeverFits(why) = &told.reason else { return None };
        Some((job.id, given_up(job, Outcome::Refused(format!("{NOT_AVAILABLE} {why}")))))
    });
    refused.collect()
}

/// The attribute of a job that started without all of the nodes that it was promised: the names of the others.
const MISSING_NODES: &str = "muster.missing_nodes";

/// The most nodes that it names.
const MOST_NAMES: usize = 100;

/// The promised nodes without which a job with a fixed start may start: they take no jobs, and it has waited for them long
/// enough (OAR-G-13). Empty if the placement is not the rest of what was promised.
pub(crate) fn missing_nodes(state: &State, job: &Job, placement: &Placement, now: Timestamp) -> Vec<NodeId> {
    let Some(slot) = job.slot.as_ref().filter(|_| job.fixed_time().is_some()) else { return Vec::new() };
    let patience = i64::from(state.settings().reserved_nodes_patience());
    let is_there = |node: NodeId| state.node(node).is_some_and(|node| state.takes_jobs(node));
    let amounts = |placement: &Placement| -> Vec<(NodeId, u64, u64, u64)> {
        let shares = placement.shares();
        shares.map(|share| (share.node, share.cores.len(), share.gpus.len(), share.memory_bytes)).collect()
    };
    let (there, missing): (Vec<_>, Vec<_>) =
        amounts(&slot.placement).into_iter().partition(|(node, ..)| is_there(*node));
    if now < slot.start.plus_seconds(patience) || there.is_empty() || amounts(placement) != there {
        return Vec::new();
    }
    missing.into_iter().map(|(node, ..)| node).collect()
}

/// The shorter walltime of a job that starts late, and the nodes without which it starts.
pub(crate) fn shortened(job: &Job, now: Timestamp, missing: &[String]) -> Option<Event> {
    let time = job.fixed_time()?;
    let left = time.seconds_left(now);
    // With the begin its end stays what it is, also if it starts once more.
    let attributes = (!missing.is_empty()).then(|| (MISSING_NODES.to_owned(), named(missing)));
    let attributes = attributes.into_iter().collect();
    let change = JobChange { begin: Some(now), walltime_seconds: Some(left), attributes, ..JobChange::default() };
    (left < time.seconds_left(time.start) || !missing.is_empty())
        .then(|| Event::JobModified { job: job.id, change: Arc::new(change) })
}

/// Names of nodes as a text, up to a maximum.
fn named(nodes: &[String]) -> String {
    let first = nodes.iter().take(MOST_NAMES).map(String::as_str).collect::<Vec<_>>().join(",");
    if nodes.len() > MOST_NAMES { format!("{first},...") } else { first }
}

/// Whether a plan may start a job by its time.
pub(crate) fn check_start(job: &Job, now: Timestamp) -> Result<(), String> {
    match job.fixed_time() {
        Some(time) if now < time.start => Err(format!("its start is fixed: it starts at {}", time.start)),
        Some(time) if now >= time.end => Err("its time has passed".into()),
        _ => Ok(()),
    }
}

/// Refuses to hold a waiting job with a fixed start before a plan has answered whether it gets that start: nobody would be told
/// the answer (OAR-J-02).
pub(crate) fn require_answered(job: &Job) -> Result<(), Refusal> {
    let is_unanswered = job.is_waiting() && job.fixed_time().is_some() && job.slot.is_none() && job.holds().is_empty();
    match is_unanswered {
        true => Err(conflict(format!("job {} has a fixed start that no plan has promised yet; hold it then", job.id))),
        false => Ok(()),
    }
}

/// Refuses changes of what a waiting job with a fixed start was promised, or asked to be promised.
pub(crate) fn require_kept(job: &Job, change: &JobChange) -> Result<(), Refusal> {
    if job.fixed_time().is_none() {
        return Ok(());
    }
    let touches = change.begin.is_some()
        || change.deadline.is_some()
        || change.walltime_seconds.is_some()
        || change.alternatives.is_some()
        || change.queue.is_some()
        || change.reservation.is_some();
    match touches {
        true => Err(conflict(format!("job {} has a fixed start: its time and its request stay as they are", job.id))),
        false => Ok(()),
    }
}
