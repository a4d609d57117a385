//! Launching steps: which resources of the job they get. Also signals to steps, and stopping them.

use crate::{
    decide::{Access, Decision, conflict, invalid, not_found, refuse},
    jobs::{Job, ProgramKind},
    runs::{PartState, Run},
    state::State,
    steps::{
        self, AtOnce, Step,
        decide::{
            binding::{Bound, Place, Wish, deal},
            gpus, layout,
        },
    },
    validate,
};
use muster_schemas::{
    JobId, StepId,
    command::{Refusal, RefusalCode, Reply},
    event::{EndCause, Event, NodeExit},
    job::ExitStatus,
    resources::{NodeShare, size_texts},
    steps::{StepGroup, StepPlace, StepShare, StepSpec},
};
use std::sync::Arc;

/// A node on which the run has not started yet cannot start a part of a step.
fn require_start(run: &Run) -> Result<(), Refusal> {
    if run.started.is_some() {
        return Ok(());
    }
    Err(Refusal::new(RefusalCode::Busy, format!("job {} has not started on all of its nodes", run.job)))
}

/// A step started in a run that has lent its cores would run on cores of other runs.
fn require_cores(run: &Run) -> Result<(), Refusal> {
    let (job, code) = (run.job, RefusalCode::Busy);
    if run.has_lent() { Err(Refusal::new(code, format!("job {job} is suspended"))) } else { Ok(()) }
}

/// Launches a step as a whole: a step that waits for cores holds none meanwhile (SL-R-08).
pub(crate) fn launch(access: &Access, job: JobId, spec: StepSpec) -> Result<Decision, Refusal> {
    let run = running(access, job)?;
    // Checked before any part of it is copied.
    steps::validate::carried(&spec, 1)?;
    let spec = layout::with_places(access.state, run, spec)?;
    steps::validate::step(&spec)?;
    require_start(run)?;
    require_cores(run)?;
    let shares = spec.places().map(|(group, place)| share(access.state, run, &spec, group, place));
    let mut shares = shares.collect::<Result<Vec<_>, _>>()?;
    gpus::deal(access.state, run, &spec, &mut shares)?;
    let step = run.next_step;
    let run = run.id;
    let event = Event::StepLaunched { job, run, step, spec: Arc::new(spec), shares };
    Ok(Decision { events: vec![event], reply: Reply::Step { run, step } })
}

/// The run of a job in which the actor may start and end steps.
fn running<'a>(access: &Access<'a>, id: JobId) -> Result<&'a Run, Refusal> {
    let job: &Job = access.state.job(id).ok_or_else(|| not_found(format!("job {id} does not exist")))?;
    access.require_management(job)?;
    if job.tasks.is_some() {
        return Err(conflict(format!("job {id} is a list of tasks, which share its cores out themselves")));
    }
    let run = job.run().and_then(|run| access.state.run(run)).filter(|run| run.stopping.is_none());
    run.ok_or_else(|| conflict(format!("job {id} does not run")))
}

/// A step's share of a node: the lowest cores that no other step has, unless its binding wants others.
fn share(
    state: &State,
    run: &Run,
    spec: &StepSpec,
    group: &StepGroup,
    place: &StepPlace,
) -> Result<StepShare, Refusal> {
    let name = &place.node;
    let of_job = format!("component {} of job {}", group.component, run.job);
    if state.job(run.job).is_some_and(|job| job.single_end(group.component).is_some()) {
        return Err(conflict(format!("{of_job} was ended; the others continue")));
    }
    let node = state.node_by_name(name).map(|node| node.id).filter(|node| run.keeps(*node));
    let held = node.and_then(|node| Some((run.part_of(node, group.component)?, run.share_of(node, group.component)?)));
    let Some((part, share)) = held else {
        return Err(invalid(format!("groups.places.node: `{}` is not a node of {of_job}", validate::shown(name))));
    };
    if part.state == PartState::Held {
        return Err(conflict(format!("{of_job} holds node {name} and starts nothing there")));
    }
    if part.has_ended() {
        return Err(conflict(format!("{of_job} has ended on node {name}")));
    }
    let wanted = u64::from(group.cores_at(place));
    let memory_bytes = group.memory_bytes.unwrap_or(0);
    within(share, wanted, memory_bytes, name, &of_job)?;
    let in_use = if spec.overlaps { Default::default() } else { state.in_use(run, share.node, group.component) };
    let free = share.cores.difference(&in_use.cores);
    if free.len() < wanted {
        let message = format!("{wanted} cores are wanted on node {name}, {} are free of other steps", free.len());
        return Err(refuse(RefusalCode::Busy, message));
    }
    if share.memory_bytes > 0 && in_use.memory_bytes.saturating_add(memory_bytes) > share.memory_bytes {
        return Err(refuse(RefusalCode::Busy, format!("other steps have the memory of node {name}")));
    }
    let tasks = u32::try_from(place.ranks.len()).unwrap_or(u32::MAX);
    let bound = match (&group.binding, state.node(share.node)) {
        (Some(binding), Some(node)) => {
            let wish = Wish { binding, tasks, cpus_per_task: group.cpus_per_task.max(1), cores: wanted };
            deal(&wish, &Place { node: &node.spec, held: &share.cores, free: &free })?
        }
        _ => Bound { cores: free.smallest(wanted), tasks: Vec::new() },
    };
    let Bound { cores, tasks: bound } = bound;
    Ok(StepShare { node: share.node, component: group.component, tasks, cores, memory_bytes, bound, gpus: None })
}

/// Refuses what exceeds the job's resources, whether others use them or not.
fn within(share: &NodeShare, cores: u64, memory_bytes: u64, node: &str, of_job: &str) -> Result<(), Refusal> {
    let limit = |message| Err(refuse(RefusalCode::LimitReached, message));
    let has = share.cores.len();
    if cores > has {
        return limit(format!("{cores} cores are wanted on node {node}, {of_job} has {has} there"));
    }
    if share.memory_bytes > 0 && memory_bytes > share.memory_bytes {
        let (wanted, has) = size_texts(memory_bytes, share.memory_bytes);
        return limit(format!("{wanted} of memory are wanted on node {node}, {of_job} has {has} there"));
    }
    Ok(())
}

/// A launched step that has not ended.
fn launched<'a>(
    access: &Access<'a>,
    job: JobId,
    step: StepId,
    component: Option<u32>,
) -> Result<(&'a Run, &'a Step), Refusal> {
    let run = running(access, job)?;
    let launched = access.state.step(run.id, step);
    let launched = launched.ok_or_else(|| not_found(format!("step {step} of job {job} does not run")))?;
    if let Some(component) = component
        && !launched.parts.iter().any(|part| part.share.component == component)
    {
        return Err(not_found(format!("step {step} of job {job} has no part in component {component}")));
    }
    Ok((run, launched))
}

pub(crate) fn signal(
    access: &Access,
    job: JobId,
    step: StepId,
    component: Option<u32>,
    signal: u8,
) -> Result<Decision, Refusal> {
    validate::signal("signal", signal)?;
    if step == StepId(0) {
        return signal_script(access, job, signal);
    }
    let (run, _) = launched(access, job, step, component)?;
    Ok(Decision::done(vec![Event::StepSignalled { job, run: run.id, step, component, signal }]))
}

/// Signals the script of a job, not the steps that it has started (SL-C-30).
fn signal_script(access: &Access, id: JobId, signal: u8) -> Result<Decision, Refusal> {
    let run = running(access, id)?;
    let has_script = access.state.job(id).is_some_and(|job| job.lead().program == ProgramKind::Script);
    if run.started.is_none() || !has_script {
        return Err(conflict(format!("job {id} has no script that runs")));
    }
    let event = Event::StepSignalled { job: id, run: run.id, step: StepId(0), component: None, signal };
    Ok(Decision::done(vec![event]))
}

/// Gives a running step another time limit, which its job's limit still cuts off.
pub(crate) fn set_walltime(
    access: &Access,
    job: JobId,
    step: StepId,
    walltime_seconds: Option<u64>,
) -> Result<Decision, Refusal> {
    walltime_seconds.map_or(Ok(()), validate::walltime)?;
    let (run, step_now) = launched(access, job, step, None)?;
    let is_news = step_now.walltime_seconds != walltime_seconds;
    let event = Event::StepWalltimeSet { job, run: run.id, step, walltime_seconds };
    Ok(Decision::done(if is_news { vec![event] } else { Vec::new() }))
}

pub(crate) fn end(
    access: &Access,
    job: JobId,
    step: StepId,
    component: Option<u32>,
    is_forced: bool,
) -> Result<Decision, Refusal> {
    let (run, step_now) = launched(access, job, step, component)?;
    let mut parts =
        step_now.parts.iter().filter(|part| component.is_none_or(|component| part.share.component == component));
    let is_news = parts.any(|part| part.stopping < Some(AtOnce::of(is_forced)));
    let event = Event::StepStopping { job, run: run.id, step, component, is_forced };
    Ok(Decision::done(if is_news { vec![event] } else { Vec::new() }))
}

/// Whether the end of one part ends the others, and how: if the step is set to do so, or the part says that the program is
/// over (SL-W-06), and they are not being ended already.
pub(crate) fn ends_the_others(state: &State, run: &Run, step: StepId, exit: &NodeExit) -> Option<AtOnce> {
    let launched = state.step(run.id, step)?;
    let has_failed = exit.status.is_none_or(|status| status != ExitStatus::Code(0));
    let is_aborted = matches!(exit.cause, EndCause::Aborted(_));
    let ends = is_aborted || launched.ends_on_failure && has_failed;
    let ends = ends && launched.parts.iter().all(|part| part.stopping.is_none());
    ends.then_some(AtOnce::of(is_aborted))
}
