//! Steps of running jobs.

mod binding;
mod gpus;
pub(crate) mod launch;
mod layout;

use crate::{
    decide::{Access, Decision},
    runs::{Part, Run, reports::require_own},
    steps::{AtOnce, StepProgress},
};
use muster_schemas::{
    PartId, StepId,
    command::Refusal,
    event::{Event, NodeExit},
    job::ExitStatus,
    steps::TaskStatus,
};

/// The part of a step on a node has ended. A repeated report has no effect.
pub(crate) fn ended(
    access: &Access,
    part: PartId,
    step: StepId,
    exit: NodeExit,
    statuses: Vec<TaskStatus>,
) -> Result<Decision, Refusal> {
    let node = access.require_node()?;
    require_own(access.state, node, part)?;
    let open = access.state.part_named(node.id, part).and_then(|(run, part)| {
        let (known, at) = (run.steps.get(&step)?, run.step_position(step, part)?);
        known.parts.get(at).filter(|of_step| of_step.exit.is_none()).map(|_| (run, part, known, at))
    });
    let Some((run, part, known, at)) = open else { return Ok(Decision::done(Vec::new())) };
    let mut events = vec![part_ended(run, step, part, exit.clone(), statuses)];
    if ends_with(known, at) {
        let status = status_that_counts(exits_with(known, at, &exit));
        events.push(Event::StepEnded { job: run.job, run: run.id, step, status });
    } else if let Some(at_once) = launch::ends_the_others(access.state, run, step, &exit) {
        let (job, run, is_forced) = (run.job, run.id, at_once == AtOnce::Yes);
        events.push(Event::StepStopping { job, run, step, component: None, is_forced });
    }
    Ok(Decision::done(events))
}

/// The event that a step has ended in this part of its run.
pub(crate) fn part_ended(run: &Run, step: StepId, part: &Part, exit: NodeExit, statuses: Vec<TaskStatus>) -> Event {
    let (node, component) = (part.node, part.component);
    Event::StepPartEnded { job: run.job, run: run.id, step, node, component, exit, statuses }
}

/// Whether all parts of a step but this one have ended.
fn ends_with(step: &StepProgress, at: usize) -> bool {
    step.parts.iter().enumerate().all(|(other, part)| other == at || part.exit.is_some())
}

/// The ends of the parts of a step, by rank; the part `at` ends now.
fn exits_with<'a>(step: &'a StepProgress, at: usize, exit: &'a NodeExit) -> impl Iterator<Item = &'a NodeExit> {
    let parts = step.parts.iter().enumerate();
    parts.filter_map(move |(other, part)| if other == at { Some(exit) } else { part.exit.as_ref() })
}

/// The first status by rank that is not 0; else none if a part has none, because its tasks never ran or their node was
/// lost; else 0.
pub(crate) fn status_that_counts<'a>(exits: impl Iterator<Item = &'a NodeExit>) -> Option<ExitStatus> {
    let statuses: Vec<_> = exits.map(|exit| exit.status).collect();
    let failure = statuses.iter().flatten().find(|status| !status.is_success()).copied();
    failure.or_else(|| statuses.into_iter().collect::<Option<Vec<_>>>()?.first().copied())
}
