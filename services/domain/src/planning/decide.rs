//! How resources are allocated to jobs: the policy, the settings, and the planner in charge.

pub(crate) mod plan;

use crate::{
    decide::{Access, Decision, invalid},
    planning,
};
use muster_schemas::{
    command::{Refusal, Reply},
    event::Event,
    policy::Policy,
    scheduling::SchedulingSettings,
};
use std::sync::Arc;

/// A planner starts work (HPC-F-89).
pub(crate) fn planner_hello(access: &Access) -> Result<Decision, Refusal> {
    access.require_planner()?;
    let epoch = access.state.planner_epoch() + 1;
    Ok(Decision { events: vec![Event::PlannerStarted { epoch }], reply: Reply::Epoch(epoch) })
}

pub(crate) fn set_policy(access: &Access, policy: Policy) -> Result<Decision, Refusal> {
    access.require_administrator("set the policy")?;
    planning::validate::policy(&policy)?;
    if access.state.planning.policy.as_deref() == Some(&policy) {
        return Ok(Decision::done(Vec::new()));
    }
    Ok(Decision::done(vec![Event::PolicySet { policy: Arc::new(policy) }]))
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
