//! Orders to sleep and to wake, and what follows from how they end.

use crate::{
    decide::{Access, Decision, conflict},
    nodes::{self, Node},
    power::outlook::{Outlook, is_stuck},
    runs,
    state::State,
};
use muster_schemas::{
    NodeId, RunId, Sequence, Timestamp,
    cluster::NodeCondition,
    command::Refusal,
    energy::{EnergySettings, PowerOrder, PowerPhase, PowerRule, PowerWay},
    event::{DeliveryResult, Event, StopReason},
    job::{Outcome, Usage},
};
use std::{collections::BTreeSet, sync::Arc};

/// The rest of a longer reason is left out.
const MAX_REASON_CHARACTERS: usize = 400;

/// An operator wants nodes to sleep or to wake (OAR-E-09).
pub(crate) fn set(access: &Access, names: &[String], way: PowerWay) -> Result<Decision, Refusal> {
    access.require_operator("put nodes to sleep and wake them")?;
    let state = access.state;
    let has_program = state.energy().is_some_and(|energy| !energy.program(way).is_empty());
    if !has_program {
        return Err(conflict(format!("energy.{way}_program: is not set, and no node can be made to {way} without it")));
    }
    let mut asked = Vec::new();
    for node in nodes::decide::find(access, names)? {
        let (rule, name) = (PowerRule::of(&node.spec), &node.spec.name);
        let (may, property) = match way {
            PowerWay::Sleep => (rule.sleeps, PowerRule::SLEEPS),
            PowerWay::Wake => (rule.wakes, PowerRule::WAKES),
        };
        if !may {
            return Err(conflict(format!("node `{name}`: its property `{property}` is no")));
        }
        let is_known = state.power.asked.get(&node.id) == Some(&way);
        if !is_known && !is_so(state, node, way) {
            asked.push(node.id);
        }
    }
    let events = if asked.is_empty() { Vec::new() } else { vec![Event::PowerAsked { way, nodes: asked }] };
    Ok(Decision::done(events))
}

/// Whether a node is as asked for, or on its way.
fn is_so(state: &State, node: &Node, way: PowerWay) -> bool {
    match (state.power_of(node.id).map(|power| power.phase), way) {
        (None, PowerWay::Wake) => node.condition == NodeCondition::Up && !state.power.asked.contains_key(&node.id),
        (Some(PowerPhase::Waking), PowerWay::Wake) => !state.power.asked.contains_key(&node.id),
        (Some(PowerPhase::Asleep | PowerPhase::FallingAsleep), PowerWay::Sleep) => {
            !state.power.asked.contains_key(&node.id)
        }
        _ => false,
    }
}

/// The events that are due.
pub(crate) fn due(state: &State, now: Timestamp) -> Vec<Event> {
    let mut events = Vec::new();
    let mut stuck: BTreeSet<RunId> = BTreeSet::new();
    for run in state.power.waiting.iter().filter_map(|run| state.run(*run)) {
        if state.has_awake_nodes(run) {
            events.push(Event::RunAwake { job: run.job, run: run.id });
        } else if is_stuck(state, run) {
            stuck.insert(run.id);
        }
    }
    for (id, power) in state.power.nodes.iter().filter(|(_, power)| power.fails <= now) {
        let seconds = power.fails.micros_since(power.since) / 1_000_000;
        let (way, reason) = match power.phase {
            PowerPhase::Asleep => continue,
            // The ledger was away. A node that still reports says so with the next sign of life.
            PowerPhase::FallingAsleep if is_long_ago(state, power.fails, now) => {
                events.push(Event::NodeAsleep { node: *id });
                continue;
            }
            PowerPhase::Waking => (PowerWay::Wake, format!("it does not report {seconds} s after it was woken")),
            PowerPhase::FallingAsleep => {
                (PowerWay::Sleep, format!("it still reports {seconds} s after it was ordered to sleep"))
            }
        };
        fail(state, *id, way, &reason, &mut events, &mut stuck);
    }
    events.extend(stuck.iter().flat_map(|run| undone(state, *run)));
    if let Some(outlook) = Outlook::of(state) {
        for way in [PowerWay::Wake, PowerWay::Sleep] {
            let nodes = outlook.due(way, now);
            events.extend(state.energy().and_then(|energy| order(energy, way, nodes, now)));
        }
    }
    events
}

/// Whether a moment is longer ago than a node may be silent.
fn is_long_ago(state: &State, at: Timestamp, now: Timestamp) -> bool {
    at.plus_seconds(i64::from(state.settings().node_lost_after_seconds)) < now
}

fn order(energy: &EnergySettings, way: PowerWay, nodes: Vec<NodeId>, now: Timestamp) -> Option<Event> {
    let seconds = match way {
        PowerWay::Sleep => energy.sleep_timeout_seconds,
        PowerWay::Wake => energy.wake_timeout_seconds(u32::try_from(nodes.len()).unwrap_or(u32::MAX)),
    };
    let order = PowerOrder {
        way,
        program: energy.program(way).to_vec(),
        account: energy.account.clone(),
        limit_seconds: energy.program_timeout_seconds,
        until: now.plus_seconds(i64::from(seconds)),
        nodes,
    };
    (!order.nodes.is_empty()).then(|| Event::PowerOrdered { order: Arc::new(order) })
}

/// A node did not obey: the runs that were to start there are planned elsewhere.
fn fail(
    state: &State,
    node: NodeId,
    way: PowerWay,
    reason: &str,
    events: &mut Vec<Event>,
    stuck: &mut BTreeSet<RunId>,
) {
    let reason = reason.chars().map(|char| if char.is_control() { ' ' } else { char });
    let reason = reason.take(MAX_REASON_CHARACTERS).collect();
    events.push(Event::NodePowerFailed { node, way, reason });
    let runs = state.node(node).into_iter().flat_map(|node| &node.runs);
    stuck.extend(runs.filter(|run| state.power.waiting.contains(run)));
}

/// A run that has started nothing ends, and its job waits again.
fn undone(state: &State, run: RunId) -> Vec<Event> {
    let Some(run) = state.run(run) else { return Vec::new() };
    let (job, run) = (run.job, run.id);
    let ended = Event::RunEnded { job, run, last: None, outcome: Outcome::Requeued, usage: Usage::default() };
    vec![ended, Event::JobRequeued { job, reason: StopReason::Requeued }]
}

/// The program of an order has ended. If it has failed, so have its nodes, except those that are as they should be.
pub(crate) fn told(state: &State, of: Sequence, result: &DeliveryResult) -> Vec<Event> {
    let Some((way, nodes)) = state.power.orders.get(&of) else { return Vec::new() };
    let error = match result {
        DeliveryResult::Delivered => None,
        DeliveryResult::GivenUp { error, .. } => Some(error.chars().take(MAX_REASON_CHARACTERS).collect::<String>()),
    };
    let mut events = vec![Event::PowerTold { order: of, way: *way, error: error.clone() }];
    let Some(error) = error else { return events };
    let phase = match way {
        PowerWay::Sleep => PowerPhase::FallingAsleep,
        PowerWay::Wake => PowerPhase::Waking,
    };
    let mut stuck = BTreeSet::new();
    let failed = nodes.iter().filter(|node| state.power_of(**node).is_some_and(|power| power.phase == phase));
    for node in failed {
        fail(state, *node, *way, &format!("the program has failed: {error}"), &mut events, &mut stuck);
    }
    events.extend(stuck.into_iter().flat_map(|run| undone(state, run)));
    events
}

/// Adds what follows if runs are stopped that wait for their nodes: nothing of them has started, so they are over.
pub(crate) fn add(state: &State, events: &mut Vec<Event>) {
    if state.power.waiting.is_empty() {
        return;
    }
    let mut at = 0;
    while at < events.len() {
        let stopped = match &events[at] {
            Event::RunStopping { run, reason, .. } if state.power.waiting.contains(run) => Some((*run, *reason)),
            _ => None,
        };
        at += 1;
        let Some((run, reason)) = stopped else { continue };
        let is_over = events.iter().any(|event| matches!(event, Event::RunEnded { run: ended, .. } if *ended == run));
        if !is_over && let Some(run) = state.run(run) {
            events.extend(runs::decide::never_launched(state, run, reason));
        }
    }
}
