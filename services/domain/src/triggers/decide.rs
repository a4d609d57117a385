//! Setting, clearing and firing triggers.

use crate::{
    decide::{Access, Decision, conflict, invalid, not_found},
    state::State,
    triggers::{Trigger, notices::argument},
    validate,
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    command::{Refusal, RefusalCode},
    event::Event,
    trigger::{TriggerOn, TriggerSelection, TriggerSpec, WatchedNodes},
};
use std::sync::Arc;

/// The most triggers of a user.
const MAX_OF_USER: usize = 100;
/// The most triggers of all users.
const MAX_OF_ALL: usize = 1_000;
/// The greatest length of a program with its words, in bytes.
const MAX_PROGRAM_BYTES: usize = 1_024;
/// The greatest offset, before and after, in seconds.
const MAX_OFFSET_SECONDS: u32 = 32_000;

/// Sets a trigger for the caller.
pub(crate) fn set(access: &Access, mut spec: TriggerSpec) -> Result<Decision, Refusal> {
    let owner = access.require_user()?;
    check_program(&spec.program)?;
    validate::number("offset_seconds", u64::from(spec.offset_seconds.unsigned_abs()), 0, MAX_OFFSET_SECONDS.into())?;
    check_subject(access, &mut spec.on)?;
    let state = access.state;
    let own = state.triggers().filter(|(_, trigger)| trigger.owner.user == owner.user).count();
    if own >= MAX_OF_USER || state.triggers.all.len() >= MAX_OF_ALL {
        let text = format!("{own} triggers of {} are set, and at most {MAX_OF_USER} can be", owner.user);
        return Err(Refusal::new(RefusalCode::LimitReached, text));
    }
    let trigger = state.triggers.highest.saturating_add(1);
    Ok(Decision::done(vec![Event::TriggerSet { trigger, owner: Arc::new(owner.clone()), spec: Arc::new(spec) }]))
}

fn check_program(program: &[String]) -> Result<(), Refusal> {
    let Some(path) = program.first() else { return Err(invalid("program: is empty, and must name a program")) };
    validate::path("program", path)?;
    if !path.starts_with('/') {
        return Err(invalid(format!("program: `{}` is not a full path, which begins with `/`", validate::shown(path))));
    }
    validate::bytes("program", program.iter().map(|word| word.len() + 1).sum(), MAX_PROGRAM_BYTES)?;
    program.iter().try_for_each(|word| validate::text("program", word))
}

/// The job must be the caller's, and not be over; the nodes must exist.
fn check_subject(access: &Access, on: &mut TriggerOn) -> Result<(), Refusal> {
    match on {
        TriggerOn::JobEnds(job) | TriggerOn::WalltimeEnds(job) => check_job(access, job),
        TriggerOn::Nodes { nodes: WatchedNodes::OfJob(job), .. } => check_job(access, job),
        TriggerOn::Nodes { nodes: WatchedNodes::All, .. } => Ok(()),
        TriggerOn::Nodes { nodes: WatchedNodes::Named(names), .. } => {
            validate::count("nodes", names.len(), access.state.nodes().count().max(1))?;
            let unknown = names.iter().find(|name| access.state.node_by_name(name).is_none());
            match unknown {
                _ if names.is_empty() => Err(invalid("nodes: no node is named")),
                Some(name) => Err(not_found(format!("node `{}` does not exist", validate::shown(name)))),
                None => Ok(()),
            }
        }
    }
}

fn check_job(access: &Access, id: &mut JobId) -> Result<(), Refusal> {
    *id = access.state.id_meant(*id);
    let job = access.state.job(*id).ok_or_else(|| not_found(format!("job {id} does not exist")))?;
    access.require_management(job)?;
    if job.is_finished() { Err(conflict(format!("job {id} is over"))) } else { Ok(()) }
}

/// Clears triggers: a user's own, and root those of all.
pub(crate) fn clear(access: &Access, which: &TriggerSelection) -> Result<Decision, Refusal> {
    let owner = access.require_user()?;
    if *which == TriggerSelection::default() {
        return Err(invalid("trigger, job, user: one of them must say which triggers to clear"));
    }
    let job = which.job.map(|job| access.state.id_meant(job));
    let matching = access.state.triggers().filter(|(number, trigger)| {
        which.trigger.is_none_or(|wanted| wanted == *number)
            && job.is_none_or(|job| trigger.spec.on.job() == Some(job))
            && which.user.as_ref().is_none_or(|user| trigger.owner.user == *user)
    });
    let matching: Vec<(u32, &Trigger)> = matching.collect();
    if matching.is_empty() {
        return Err(not_found("no such trigger is set"));
    }
    let may_clear = |trigger: &Trigger| access.is_administrator() || trigger.owner.user == owner.user;
    if let Some((number, trigger)) = matching.iter().find(|(_, trigger)| !may_clear(trigger)) {
        let text = format!("trigger {number} belongs to {}", trigger.owner.user);
        return Err(Refusal::new(RefusalCode::PermissionDenied, text));
    }
    let triggers = matching.into_iter().map(|(number, _)| number).collect();
    Ok(Decision::done(vec![Event::TriggersCleared { triggers }]))
}

/// The triggers that fire now.
pub(crate) fn due(state: &State, now: Timestamp) -> impl Iterator<Item = Event> {
    state.triggers().filter_map(move |(number, trigger)| {
        trigger.due(state).filter(|due| *due <= now)?;
        let latest = now.plus_seconds(-i64::from(trigger.wait_seconds()));
        // Nodes that are not due alone go with those that are, except if they have to stay as they are.
        let waits = trigger.spec.offset_seconds > 0;
        let is_due = |(node, since): (&NodeId, &Timestamp)| (!waits || *since <= latest).then_some(*node);
        let nodes: Vec<NodeId> = trigger.turned.iter().filter_map(is_due).collect();
        Some(Event::TriggerFired {
            trigger: number,
            owner: trigger.owner.clone(),
            program: trigger.spec.program.clone(),
            argument: argument(state, trigger, &nodes),
            job: trigger.spec.on.job(),
            nodes,
        })
    })
}
