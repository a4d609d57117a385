//! How resources are allocated to jobs: the policy, the settings, and the planner in charge.

pub(crate) mod plan;

use crate::{
    decide::{Access, Decision, invalid},
    planning,
};
use muster_schemas::{
    command::{Refusal, Reply},
    cycle::{MOST_CYCLE_TEXT_BYTES, MOST_GLOBALS_BYTES, MOST_REFUSED_ACTIONS, ProgramCycle, RefusedAction},
    event::Event,
    policy::{Policy, PolicySource},
    scheduling::SchedulingSettings,
};
use std::sync::Arc;

/// A planner starts work (HPC-F-89).
pub(crate) fn planner_hello(access: &Access) -> Result<Decision, Refusal> {
    access.require_planner()?;
    let epoch = access.state.planner_epoch() + 1;
    Ok(Decision { events: vec![Event::PlannerStarted { epoch }], reply: Reply::Epoch(epoch) })
}

/// A cycle of a scheduling program is over (PBS-C-11). Whoever made it, its texts are bounded, and its number is the next
/// one.
pub(crate) fn note_cycle(access: &Access, mut cycle: ProgramCycle) -> Result<Decision, Refusal> {
    access.require_planner()?;
    let cut = |text: &mut String, most: usize| text.truncate(text.floor_char_boundary(most));
    cycle.number = access.state.program_cycle().map_or(1, |last| last.number.saturating_add(1));
    cycle.epoch = access.state.planner_epoch();
    cycle.reasons.truncate(MOST_REASONS);
    cycle.sources.truncate(MOST_REASONS);
    cycle.refusals.truncate(MOST_REFUSED_ACTIONS);
    let sources = cycle.sources.iter_mut().flat_map(|PolicySource { name, sha256 }| [name, sha256]);
    let refusals = cycle.refusals.iter_mut();
    let refusals = refusals.flat_map(|RefusedAction { action, about, reason }| [action, about, reason]);
    let texts = cycle.reasons.iter_mut().chain(sources).chain(refusals).chain(cycle.trouble.as_mut());
    texts.chain([&mut cycle.program]).for_each(|text| cut(text, MOST_CYCLE_TEXT_BYTES));
    // A part of them would be no JSON.
    cycle.globals = cycle.globals.filter(|globals| globals.len() <= MOST_GLOBALS_BYTES);
    Ok(Decision::done(vec![Event::ProgramCycled { cycle: Arc::new(cycle) }]))
}

/// Maximum number of reasons of a cycle, and of files of a program.
const MOST_REASONS: usize = 16;
/// Maximum number of mistakes or warnings about a policy on record, and of bytes of each.
const MOST_MISTAKES: usize = 100;
const MOST_MISTAKE_BYTES: usize = 500;

pub(crate) fn set_policy(access: &Access, policy: Policy) -> Result<Decision, Refusal> {
    access.require_administrator("set the policy")?;
    planning::validate::policy(&policy)?;
    if access.state.planning.policy.as_deref() == Some(&policy) {
        return Ok(Decision::done(Vec::new()));
    }
    Ok(Decision::done(vec![Event::PolicySet { policy: Arc::new(policy) }]))
}

/// Puts on record that a policy cannot be followed; the one in force stays (PBS-C-14).
pub(crate) fn refuse_policy(
    access: &Access,
    name: String,
    sources: Vec<PolicySource>,
    mistakes: Vec<String>,
) -> Result<Decision, Refusal> {
    access.require_administrator("refuse a policy")?;
    let mistakes = bounded("mistakes", mistakes)?;
    // The faults of a name and of files are those that a policy with them has.
    planning::validate::policy(&Policy { name: name.clone(), sources: sources.clone(), ..Policy::default() })?;
    Ok(Decision::done(vec![Event::PolicyRefused { name, sources, mistakes }]))
}

/// Puts on record what is doubtful about the files of the policy in force (PBS-T-05).
pub(crate) fn warn_of_policy(access: &Access, name: String, warnings: Vec<String>) -> Result<Decision, Refusal> {
    access.require_administrator("warn of a policy")?;
    let warnings = bounded("warnings", warnings)?;
    planning::validate::policy(&Policy { name: name.clone(), ..Policy::default() })?;
    Ok(Decision::done(vec![Event::PolicyWarned { name, warnings }]))
}

/// The texts about files that are kept: the first ones, cut, with the number of the others.
fn bounded(what: &str, texts: Vec<String>) -> Result<Vec<String>, Refusal> {
    if texts.is_empty() {
        return Err(invalid(format!("{what}: expected at least one")));
    }
    let total = texts.len();
    let mut kept: Vec<String> = texts.into_iter().take(MOST_MISTAKES).collect();
    kept.iter_mut().for_each(|text| text.truncate(text.floor_char_boundary(MOST_MISTAKE_BYTES)));
    if total > kept.len() {
        kept.push(format!("{} more", total - kept.len()));
    }
    Ok(kept)
}

/// Sets how resources are allocated to jobs (HPC-S-01). By itself it starts and stops nothing.
pub(crate) fn set_scheduling(access: &Access, settings: SchedulingSettings) -> Result<Decision, Refusal> {
    access.require_administrator("change how resources are given to jobs")?;
    let seconds = [
        ("rebalance_seconds", settings.rebalance_seconds),
        ("release_timeout_seconds", settings.release_timeout_seconds),
    ];
    for (name, value) in seconds {
        if value.is_some_and(|value| !(1..=3600).contains(&value)) {
            return Err(invalid(format!("{name}: expected 1 to 3600")));
        }
    }
    let old = access.state.scheduling().clone();
    if *old == settings {
        return Ok(Decision::done(Vec::new()));
    }
    Ok(Decision::done(vec![Event::SchedulingSet { old, settings: Arc::new(settings) }]))
}
