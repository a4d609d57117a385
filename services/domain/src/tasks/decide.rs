//! Runs of lists of tasks that grow, shrink, make way and end.

use crate::{
    decide::conflict,
    jobs::Job,
    lending,
    runs::{
        Run,
        stopping::{is_at_once, stop_reason},
    },
    state::State,
    tasks::room::{kept_units, units},
};
use muster_schemas::{
    JobId,
    command::{JobEnding, Refusal},
    event::{Event, ShrinkReason, StopReason},
    resources::{NodeShare, Placement},
    scheduling::Preemption,
};
use std::{collections::BTreeSet, sync::Arc};

/// Why these resources cannot be added to a running job, whether they are free or not; `None` if they can.
pub(crate) fn growth_problem(state: &State, id: JobId, added: &Placement) -> Option<String> {
    let (job, run) = match goes_on(state, id) {
        Ok(found) => found,
        Err(problem) => return Some(problem),
    };
    let tasks = job.tasks.as_deref()?;
    if job.filters.as_ref().is_some_and(|filters| filters.is_backfill) {
        return Some("it was started around a job that waits, and does not grow".into());
    }
    if tasks.shrinking.is_some() {
        return Some("it has to give up resources".into());
    }
    if let Some(problem) = shares_problem(added) {
        return Some(problem);
    }
    if let Some(share) = added.shares().find(|share| tasks.leaving.contains(&share.node)) {
        let node = state.node_name(share.node);
        return Some(format!("its part on node {node}, which it has given up, has not ended"));
    }
    if let Some(problem) = unusable_problem(state, job, added) {
        return Some(problem);
    }
    let total = kept_units(state, tasks, run).saturating_add(units(state, tasks.unit, added));
    (total > tasks.max)
        .then(|| format!("it would have {total} of its unit, the most that it may have is {}", tasks.max))
}

/// Why a job cannot get these resources although they may be free: one of the nodes could not be prepared for it before
/// (HPC-J-22).
pub(crate) fn unusable_problem(state: &State, job: &Job, placement: &Placement) -> Option<String> {
    let tasks = job.tasks.as_deref()?;
    let share = placement.shares().find(|share| tasks.unusable.contains(&share.node))?;
    Some(format!("node {} could not be prepared for it before", state.node_name(share.node)))
}

/// Makes a running job give up resources.
///
/// # Errors
/// Why it cannot.
pub(crate) fn shrink(state: &State, id: JobId, removed: Placement, reason: ShrinkReason) -> Result<Event, String> {
    let (job, run) = goes_on(state, id)?;
    let Some(tasks) = &job.tasks else { return Err(no_list(id)) };
    if job.opens_domain().is_some() {
        return Err("it holds its resources for a planning domain".into());
    }
    if tasks.shrinking.is_some() {
        return Err("it already has to give up resources".into());
    }
    if let Some(problem) = shares_problem(&removed) {
        return Err(problem);
    }
    if let Some(share) = removed.shares().find(|share| !has(run, share)) {
        return Err(format!("it does not have all of this on node {}", state.node_name(share.node)));
    }
    let mut smaller = (**tasks).clone();
    smaller.shrinking = Some((Arc::new(removed), reason));
    let left = kept_units(state, &smaller, run);
    match reason {
        ShrinkReason::Idle | ShrinkReason::Rebalanced | ShrinkReason::TasksRebalanced if left < tasks.min => {
            return Err(format!("it would keep {left} of its unit, its least is {}", tasks.min));
        }
        ShrinkReason::Preempted | ShrinkReason::TasksPreempted | ShrinkReason::TasksRebalanced
            if !tasks.preemptable =>
        {
            return Err("it makes way for no other job".into());
        }
        ShrinkReason::Asked => return Err("nobody asked for it".into()),
        _ => {}
    }
    let removed = smaller.shrinking.map(|(removed, _)| removed).unwrap_or_default();
    Ok(Event::RunShrinking { job: id, run: run.id, removed, reason })
}

/// Makes a running job give way to another. With immediate preemption it stops; with graceful preemption it gives up
/// what is claimed (everything, without a claim) once its tasks there have ended (HPC-S-12). If only as many tasks as
/// needed are stopped, these are the ones on what is claimed (HPC-S-14). A job that makes way because of its class or its queue
/// stops, or is suspended.
///
/// # Errors
/// Why it does not.
pub(crate) fn make_way(state: &State, victim: JobId, for_job: JobId, claim: &Placement) -> Result<Vec<Event>, String> {
    let (job, run) = state
        .job(victim)
        .and_then(|job| Some((job, state.run(job.run()?)?)))
        .ok_or_else(|| format!("job {victim} does not run"))?;
    let gains = state.job(for_job).ok_or_else(|| format!("job {for_job} no longer exists"))?;
    let stop = Event::RunStopping { job: victim, run: run.id, reason: StopReason::Preempted, grace_seconds: None };
    let by_priority = job.tasks.as_deref().is_some_and(|tasks| tasks.preemptable)
        && job.lead().priority < gains.lead().priority
        && state.scheduling().makes_way_for(gains.tasks.is_some());
    if !by_priority && state.makes_way(job, gains) {
        if run.stopping.is_none() && state.is_suspended_if_preempted(job) {
            return lending::making_way::make_way(run, for_job);
        }
        return Ok(if run.stopping.is_none() { vec![stop] } else { Vec::new() });
    }
    let Some(tasks) = job.tasks.as_deref().filter(|tasks| tasks.preemptable) else {
        return Err(format!("job {victim} makes way for no other job"));
    };
    if job.lead().priority >= gains.lead().priority {
        return Err(format!("the priority of job {victim} is not lower than that of job {for_job}"));
    }
    let makes_way_already = run.stopping.is_some() || tasks.ending.is_some() || tasks.shrinking.is_some();
    if makes_way_already {
        return Ok(Vec::new());
    }
    // Otherwise it has no running tasks that could end by themselves or be stopped individually.
    let is_running = run.started.is_some() && !run.is_suspended();
    let has_claim = claim.shares().next().is_some();
    let give_up = |removed, reason| shrink(state, victim, removed, reason).map(|event| vec![event]);
    match state.scheduling().preemption() {
        Preemption::None => Err("running jobs do not make way".into()),
        Preemption::Graceful if is_running && has_claim => give_up(claim.clone(), ShrinkReason::Preempted),
        Preemption::Graceful if is_running => give_up((*run.placement).clone(), ShrinkReason::Preempted),
        Preemption::Immediate if is_running && has_claim && state.scheduling().task_preemption.unwrap_or(false) => {
            give_up(claim.clone(), ShrinkReason::TasksPreempted)
        }
        Preemption::Graceful | Preemption::Immediate => Ok(vec![stop]),
    }
}

/// Ends a running job (HPC-C-06): tasks that release nodes run first, unless the end is forced.
///
/// # Errors
/// If tasks may end by themselves and the job is not a list of tasks; or the other way round, if a time until the kill is named.
pub(crate) fn end_run(job: &Job, run: &Run, ending: &JobEnding) -> Result<Vec<Event>, Refusal> {
    let reason = stop_reason(ending);
    let grace_seconds = ending.grace_seconds;
    let stop = Event::RunStopping { job: job.id, run: run.id, reason, grace_seconds };
    let Some(tasks) = job.tasks.as_deref() else {
        if ending.is_graceful && !ending.is_forced {
            let id = job.id;
            return Err(conflict(format!(
                "job {id} is one program, not a list of tasks: nothing of it ends before it"
            )));
        }
        // A run that is ending can only end sooner.
        let ends_sooner = grace_seconds.is_some_and(|own| run.stop_grace_seconds.is_none_or(|known| own < known));
        let is_news = (run.stopping != Some(reason) || ends_sooner) && !run.stopping.is_some_and(is_at_once);
        return Ok(if is_news { vec![stop] } else { Vec::new() });
    };
    if grace_seconds.is_some() {
        let id = job.id;
        return Err(conflict(format!(
            "job {id} is a list of tasks: the time until they are killed is that of the job"
        )));
    }
    let has_release = tasks.of_kind(muster_schemas::tasks::TaskKind::NodeRelease).is_some();
    let winds_down = run.started.is_some() && run.stopping.is_none() && !run.is_suspended() && !ending.is_forced;
    if !winds_down || !ending.is_graceful && !has_release {
        let is_news = run.stopping != Some(reason) && !run.stopping.is_some_and(is_at_once);
        return Ok(if is_news { vec![stop] } else { Vec::new() });
    }
    let is_graceful = ending.is_graceful && tasks.ending.is_none_or(|before| before.is_graceful);
    let is_news = tasks.ending.is_none_or(|before| (before.reason, before.is_graceful) != (reason, is_graceful));
    let wind_down = Event::TasksStopping { job: job.id, run: run.id, reason, is_graceful };
    Ok(if is_news { vec![wind_down] } else { Vec::new() })
}

/// A running list of tasks, if nothing is about to end it.
fn goes_on(state: &State, id: JobId) -> Result<(&Job, &Run), String> {
    let Some((job, tasks, run)) = state.task_run(id) else { return Err(no_list(id)) };
    if run.started.is_none() || run.stopping.is_some() || tasks.ending.is_some() {
        return Err("it has not started, or is ending".into());
    }
    Ok((job, run))
}

fn no_list(id: JobId) -> String {
    format!("job {id} is no list of tasks that runs")
}

fn shares_problem(placement: &Placement) -> Option<String> {
    let mut seen = BTreeSet::new();
    if placement.components.len() != 1 {
        return Some(format!("{} components are placed, the job has 1", placement.components.len()));
    }
    if placement.shares().next().is_none() || placement.shares().any(|share| share.cores.is_empty()) {
        return Some("no core is given on a node".into());
    }
    (!placement.shares().all(|share| seen.insert(share.node))).then(|| "a node is given twice".into())
}

fn has(run: &Run, share: &NodeShare) -> bool {
    run.share(share.node).is_some_and(|held| {
        let takes_all = share.cores.contains_all(&held.cores);
        let of_it = held.cores.contains_all(&share.cores)
            && held.gpus.contains_all(&share.gpus)
            && share.memory_bytes <= held.memory_bytes;
        // With the last core goes everything else.
        of_it && (!takes_all || (&held.gpus, held.memory_bytes) == (&share.gpus, share.memory_bytes))
    })
}
