//! Holding, releasing and ending one component of a job while the others continue.

use crate::{
    components::SingleEnd,
    decide::{conflict, invalid},
    jobs::{Job, decide::endings},
    runs::{Part, Run, stopping},
    state::State,
    steps,
};
use muster_schemas::{
    command::{JobEnding, Refusal},
    event::{Event, NodeExit},
    job::{Holds, Usage},
    resources::{ComponentPlacement, Placement},
};
use std::{collections::BTreeMap, sync::Arc};

/// The holds of a component. The job waits while any component is held (SL-M-11).
pub(crate) fn hold(job: &Job, component: u32, holds: Holds, reason: &str) -> Vec<Event> {
    let added = holds.without(job.components[component as usize].holds);
    if added.is_empty() {
        return Vec::new();
    }
    vec![Event::ComponentHeld { job: job.id, component, holds: added, reason: reason.to_owned() }]
}

pub(crate) fn release(job: &Job, component: u32, holds: Holds) -> Vec<Event> {
    let set = job.components[component as usize].holds;
    let taken = set.without(set.without(holds));
    if taken.is_empty() { Vec::new() } else { vec![Event::ComponentReleased { job: job.id, component, holds: taken }] }
}

/// Ends a component of a running job; the others continue (SL-M-02). A job that has not started can only be ended as a
/// whole (SL-M-03), and a job ends with its first component (SL-I-12).
pub(crate) fn end(state: &State, job: &Job, component: u32, ending: &JobEnding) -> Result<Vec<Event>, Refusal> {
    let id = job.id;
    if component == 0 {
        return Err(invalid(format!("component: job {id} ends with its first component; end the job")));
    }
    if ending.is_graceful && !ending.is_forced {
        return Err(conflict(format!("component {component} of job {id} is no list of tasks: nothing ends before it")));
    }
    if ending.grace_seconds.is_some() {
        return Err(invalid("grace_seconds: a single component has that of its job"));
    }
    let run = job.run().and_then(|run| state.run(run));
    let Some(run) = run.filter(|run| run.started.is_some() && run.stopping.is_none()) else {
        let word = endings::word(state, job);
        return Err(conflict(format!("job {id} is {word}, not running: a single component cannot be ended")));
    };
    let reason = stopping::stop_reason(ending);
    let before = job.single_end(component);
    if before.is_some_and(|end| end.over.is_some()) {
        return Err(conflict(format!("component {component} of job {id} is over")));
    }
    let is_news = before.is_none_or(|end| end.reason != reason && !stopping::is_at_once(end.reason));
    if !is_news {
        return Ok(Vec::new());
    }
    let mut events = vec![Event::ComponentStopping { job: id, run: run.id, component, reason }];
    if run.parts.iter().filter(|part| part.component == component).all(Part::has_ended) {
        // Its processes have ended by themselves; only its resources remain to be given back.
        events.extend(over(job, run, component, &SingleEnd { reason, over: None }, None));
    }
    Ok(events)
}

/// The events that follow if the ended part is the last one of a component that is being ended.
pub(crate) fn part_ended(job: &Job, run: &Run, part: &Part, exit: &NodeExit) -> Vec<Event> {
    let component = part.component;
    let Some(end) = job.single_end(component) else { return Vec::new() };
    let mut others = run.others(part).filter(|part| part.component == component);
    if others.all(Part::has_ended) { over(job, run, component, end, Some((part, exit))) } else { Vec::new() }
}

/// The events once all parts of a component have ended, the last one now: its parts of steps are over, and its
/// resources are free.
fn over(job: &Job, run: &Run, component: u32, end: &SingleEnd, last: Option<(&Part, &NodeExit)>) -> Vec<Event> {
    let parts = || run.parts.iter().filter(move |part| part.component == component);
    let exit_of = |part: &Part| last.filter(|(last, _)| last.is(part)).map(|(_, exit)| exit.clone());
    let exits: Vec<NodeExit> = parts().filter_map(|part| exit_of(part).or_else(|| part.exit().cloned())).collect();
    let usage = exits.iter().map(|exit| exit.usage).fold(Usage::default(), Usage::plus);
    let ends: Vec<(&Part, &NodeExit)> = parts().zip(&exits).collect();
    let mut events: Vec<Event> = steps_over(run, &ends);
    let outcome = end.outcome();
    events.push(Event::ComponentEnded { job: job.id, run: run.id, component, outcome, usage });
    let removed = Arc::new(only(&run.placement, component));
    events.push(Event::RunShrunk { job: job.id, run: run.id, removed });
    events
}

/// A placement reduced to one component.
fn only(placement: &Placement, component: u32) -> Placement {
    let components = placement.components.iter().zip(0..).map(|(placed, number)| ComponentPlacement {
        alternative: placed.alternative,
        shares: if number == component { placed.shares.clone() } else { Vec::new() },
    });
    Placement { components: components.collect() }
}

/// The ends of steps that were never reported: no process of these parts of the run is left, so their parts of steps
/// ended as they did (SL-M-15).
pub(crate) fn steps_over(run: &Run, ends: &[(&Part, &NodeExit)]) -> Vec<Event> {
    let mut events = Vec::new();
    for (id, step) in &run.steps {
        let open_in = |part: &Part| {
            let at = run.step_position(*id, part)?;
            step.parts.get(at).filter(|of_step| of_step.exit.is_none()).map(|_| at)
        };
        let open: BTreeMap<usize, (&Part, NodeExit)> =
            ends.iter().filter_map(|(part, exit)| Some((open_in(part)?, (*part, ended_with(exit))))).collect();
        if open.is_empty() {
            continue;
        }
        let ended = |(part, exit)| steps::decide::part_ended(run, *id, part, exit, Vec::new());
        events.extend(open.values().cloned().map(ended));
        let end_of = |at: usize| open.get(&at).map(|(_, exit)| exit);
        let exits: Option<Vec<&NodeExit>> =
            (0..).zip(&step.parts).map(|(at, part)| part.exit.as_ref().or_else(|| end_of(at))).collect();
        if let Some(exits) = exits {
            let status = steps::decide::status_that_counts(exits.into_iter());
            events.push(Event::StepEnded { job: run.job, run: run.id, step: *id, status });
        }
    }
    events
}

/// The end of a step that ended with its part of the run. All usage is charged to the part.
fn ended_with(exit: &NodeExit) -> NodeExit {
    NodeExit { usage: Usage::default(), ..exit.clone() }
}
