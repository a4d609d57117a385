//! Reports of executors: that a node is up, that parts of runs started and ended.

use crate::{
    components, copies,
    decide::{Access, Decision},
    jobs::{Job, ProgramKind},
    nodes::Node,
    orders,
    requests::{self, fits},
    runs::{Part, PartState, Run, reports::require_own, shrink},
    state::State,
    validate,
};
use muster_schemas::{
    NodeId, PartId, RunId, Sequence, Timestamp,
    cluster::NodeCondition,
    command::{Refusal, Reply},
    event::{EndCause, Event, NodeExit, NodePart, StopReason},
    job::{ExitStatus, JobType, Outcome, RequeuePolicy, Usage},
    node::Briefing,
    unfit::UnfitCause,
};
use std::collections::BTreeSet;

/// The node is up. The orders for its runs come from [`crate::orders::reconcile`], which the ledger calls.
pub(crate) fn hello(
    access: &Access,
    boot_id: &str,
    known: Known<'_>,
    highest_run: Option<RunId>,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let node = access.require_node()?;
    validate::name("boot_id", boot_id)?;
    let is_up = node.condition == NodeCondition::Up;
    let mut events = Vec::new();
    let up = || Event::NodeUp { node: node.id, boot_id: boot_id.to_owned() };
    match known.as_of {
        _ if !is_up => events.push(up()),
        Some(as_of) if node.boot_id == boot_id => {
            events.extend(forgotten_parts(access.state, node, known.parts, as_of, now));
        }
        Some(as_of) if node.greeted <= as_of => {
            events.extend(booted_again(access.state, node, known.parts, as_of, now));
            events.push(up());
        }
        // Nothing is certain yet. The answer brings a mark, and the node's next report includes it.
        _ => {}
    }
    events.extend(highest_run.and_then(|highest| numbers_raised(access.state, highest)));
    Ok(Decision { events, reply: Reply::NodeOrders(Briefing::default()) })
}

/// What a node reports that it knows.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    /// Parts of runs.
    pub(crate) parts: &'a [PartId],
    /// The record up to which the list is reliable; see [`muster_schemas::node::Mark`].
    pub(crate) as_of: Option<Sequence>,
}

/// How many run numbers can be skipped at once, so that no node can use them up.
const MAX_RAISE: u64 = 1 << 32;

/// A node never starts a run that it remembers. If it remembers later runs than the log, because an older log was
/// restored, the numbers continue after those.
fn numbers_raised(state: &State, highest: RunId) -> Option<Event> {
    let next = state.next_run();
    let has_room = next.0 < PartId::MAX_RUNS - 2 * MAX_RAISE;
    (highest >= next && has_room).then(|| Event::RunNumbersRaised {
        next: RunId(highest.0.min(next.0.saturating_add(MAX_RAISE)).saturating_add(1)),
    })
}

/// After a restore, run numbers continue at the next multiple of this: far more than runs can be lost with the records
/// after a backup, and easy to read.
const RESTORED_RUNS: u64 = 1_000_000_000;
/// How exactly runs are timed.
const MICROS_PER_SECOND: i64 = 1_000_000;

/// The lowest number for runs after a restore of the log. Nodes may remember runs whose records are lost, and never start
/// a run that they remember; not all of them may have reported when the first job starts.
pub fn runs_after_restore(state: &State) -> RunId {
    let next = state.next_run().0;
    let raised = (next / RESTORED_RUNS + 1).saturating_mul(RESTORED_RUNS);
    // The other numbers are for runs that nodes report.
    RunId(if raised < PartId::MAX_RUNS / 2 { raised } else { next })
}

/// Ends parts of runs that the node had started and no longer knows: they cannot be started a second time.
fn forgotten_parts(state: &State, node: &Node, known: &[PartId], as_of: Sequence, now: Timestamp) -> Vec<Event> {
    let forgotten = |run: &Run, part: &Part| orders::is_forgotten(state, run, part, known, as_of);
    parts_lost(state, node, forgotten, "the node had started it but no longer knows it", now)
}

/// The node was rebooted: what ran there before is gone. The node itself reports the ends of the parts that it names;
/// parts ordered or started after the moment for which its list is true belong to the new boot.
fn booted_again(state: &State, node: &Node, known: &[PartId], as_of: Sequence, now: Timestamp) -> Vec<Event> {
    let reason = "it was booted again";
    let is_lost =
        |run: &Run, part: &Part| !part.has_ended() && part.since <= as_of && !known.contains(&state.part_id(run, part));
    let mut events = vec![Event::NodeLost { node: node.id, reason: reason.to_owned() }];
    events.extend(parts_lost(state, node, is_lost, reason, now));
    events
}

/// The node is lost, and the parts of runs there with it.
pub(crate) fn node_lost(state: &State, node: &Node, reason: &str, now: Timestamp) -> Vec<Event> {
    let mut events = vec![Event::NodeLost { node: node.id, reason: reason.to_owned() }];
    // The ends of parts that have ended there are known already.
    events.extend(parts_lost(state, node, |_, part| !part.has_ended(), reason, now));
    events.extend(copies::decide::node_lost(state, node.id, now));
    events
}

/// Ends the lost parts of runs on a node.
fn parts_lost(
    state: &State,
    node: &Node,
    is_lost: impl Fn(&Run, &Part) -> bool,
    reason: &str,
    now: Timestamp,
) -> Vec<Event> {
    let exit = NodeExit {
        status: None,
        cause: EndCause::Lost(reason.to_owned()),
        usage: Usage::default(),
        started: None,
        ended: now,
    };
    let lost_of = |run: &Run| run.parts_on(node.id).filter(|part| is_lost(run, part)).cloned().collect::<Vec<Part>>();
    let runs = node.runs.iter().filter_map(|run| state.run(*run));
    runs.flat_map(|run| together_lost(state, run, &lost_of(run), &exit)).collect()
}

/// A run that is being stopped is over without the nodes that have not reported its end. They take no new jobs, because its
/// processes may still be there.
pub(crate) fn given_up(state: &State, run: &Run, now: Timestamp) -> Vec<Event> {
    let lost: Vec<Part> = run.parts.iter().filter(|part| !part.has_ended()).cloned().collect();
    let reason =
        format!("{} of job {} may be left: it was closed without this node", UnfitCause::Remains.words(), run.job);
    let nodes: BTreeSet<NodeId> = lost.iter().map(|part| part.node).collect();
    let in_service = nodes.into_iter().filter_map(|node| state.node(node)).filter(|node| node.drained.is_none());
    let taken_out = |node: &Node| Event::NodeTakenOut { node: node.id, reason: reason.clone(), is_down: false };
    let mut events: Vec<Event> = in_service.map(taken_out).collect();
    let cause = EndCause::Lost(reason);
    let exit = NodeExit { status: None, cause, usage: Usage::default(), started: None, ended: now };
    events.extend(together_lost(state, run, &lost, &exit));
    events
}

/// Ends parts of a run that are lost at the same time: the consequences of each end depend on those before it.
fn together_lost(state: &State, run: &Run, lost: &[Part], exit: &NodeExit) -> Vec<Event> {
    let Some((part, rest)) = lost.split_first() else { return Vec::new() };
    let mut events = end_part(state, run, part, exit.clone(), Reporter::Nobody);
    if !rest.is_empty() {
        let mut after = run.clone();
        after.stopping = after.stopping.or(stop_in(&events));
        events.iter().for_each(|event| note_step_end(&mut after, event));
        if let Some(part) = after.part_of_mut(part.node, part.component) {
            part.state = PartState::Ended(Box::new(exit.clone()));
        }
        events.extend(together_lost(state, &after, rest, exit));
    }
    events
}

/// Applies the end of a part of a step, or of the step, to a run.
fn note_step_end(run: &mut Run, event: &Event) {
    match event {
        Event::StepPartEnded { step, node, component, exit, .. } => run.end_step_part(*step, *node, *component, exit),
        Event::StepEnded { step, .. } => {
            run.steps.remove(step);
        }
        _ => {}
    }
}

fn stop_in(events: &[Event]) -> Option<StopReason> {
    events.iter().find_map(|event| match event {
        Event::RunStopping { reason, .. } => Some(*reason),
        _ => None,
    })
}

pub(crate) fn started(access: &Access, id: PartId) -> Result<Decision, Refusal> {
    let node = access.require_node()?;
    require_own(access.state, node, id)?;
    let launching = access.state.part_named(node.id, id).filter(|(_, part)| part.state == PartState::Launching);
    Ok(Decision::done(launching.map(|(run, part)| part_started(run, part)).into_iter().collect()))
}

/// The first part of a run was sent a signal (OAR-S-30). The others say nothing, and what ends meanwhile is of no interest.
pub(crate) fn signalled(
    access: &Access,
    id: PartId,
    signal: u8,
    was_due: bool,
    processes: u32,
) -> Result<Decision, Refusal> {
    let node = access.require_node()?;
    require_own(access.state, node, id)?;
    validate::signal("signal", signal)?;
    let place = |part: &Part| (part.node, part.component);
    let is_first = |run: &Run, part: &Part| run.parts.first().is_some_and(|first| place(first) == place(part));
    let first = access.state.part_named(node.id, id).filter(|(run, part)| is_first(run, part));
    let delivered = first.map(|(run, _)| Event::JobSignalDelivered {
        job: run.job,
        run: run.id,
        node: node.id,
        signal,
        was_due,
        processes,
    });
    Ok(Decision::done(delivered.into_iter().collect()))
}

/// The processes of a part that was being launched run.
fn part_started(run: &Run, part: &Part) -> Event {
    told_started(run, part, run.started.is_none() && run.others(part).all(has_started))
}

/// Reports that a part has started, and whether the whole run has started with it.
fn told_started(run: &Run, part: &Part, whole_run: bool) -> Event {
    let (job, run, node, component) = (run.job, run.id, part.node, part.component);
    match whole_run {
        true => Event::RunStarted { job, run, node, component },
        false => Event::RunPartStarted { job, run, node, component },
    }
}

/// The end of a part of a run that continues.
fn part_ended(run: &Run, part: &Part, exit: NodeExit) -> Event {
    Event::RunPartEnded { job: run.job, run: run.id, node: part.node, component: part.component, exit }
}

fn has_started(part: &Part) -> bool {
    match &part.state {
        PartState::Launching => false,
        PartState::Started | PartState::Held => true,
        PartState::Ended(exit) => exit.started.is_some(),
    }
}

/// Whether the end of a part shows that the whole run had started, although this was not known: every part that runs
/// something has started. A part that only holds resources can be slower than a short script, or its node's report.
fn has_run_by_now(job: &Job, run: &Run, part: &Part, exit: &NodeExit) -> bool {
    let this_one_ran = exit.started.is_some() && works(job, run, part);
    let mut others = run.others(part).filter(|part| works(job, run, part));
    run.started.is_none() && this_one_ran && others.all(has_started)
}

/// A repeated report, or one about a run that is over, is accepted without effect.
pub(crate) fn ended(access: &Access, id: PartId, exit: NodeExit) -> Result<Decision, Refusal> {
    let node = access.require_node()?;
    require_own(access.state, node, id)?;
    if let Some(run) = access.state.run(id.run()).filter(|run| has_left(access.state, run, node.id)) {
        let (job, run, node, component) = (run.job, run.id, node.id, id.component());
        return Ok(Decision::done(vec![Event::RunPartEnded { job, run, node, component, exit }]));
    }
    let part = access.state.part_named(node.id, id).filter(|(_, part)| !part.has_ended());
    let events = part.map(|(run, part)| end_part(access.state, run, part, exit, Reporter::Node));
    Ok(Decision::done(events.unwrap_or_default()))
}

/// Whether a run gave up its whole share of a node, and the end of its part there has not been reported.
fn has_left(state: &State, run: &Run, node: NodeId) -> bool {
    let tasks = state.job(run.job).and_then(|job| job.tasks.as_ref());
    run.part(node).is_none() && tasks.is_some_and(|tasks| tasks.leaving.contains(&node))
}

/// The source of the news that a part ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reporter {
    Node,
    /// Its node is lost.
    Nobody,
}

/// Ends the part of a run on one node, with the consequences for the run and its job.
fn end_part(state: &State, run: &Run, part: &Part, exit: NodeExit, reporter: Reporter) -> Vec<Event> {
    let mut events = Vec::new();
    let Some(job) = state.job(run.job) else { return events };
    if has_run_by_now(job, run, part, &exit) {
        events.push(told_started(run, part, true));
    } else if part.state == PartState::Launching && exit.started.is_some() {
        events.push(part_started(run, part));
    }
    if run.others(part).all(Part::has_ended) {
        events.extend(end_run(state, job, run, part, exit, reporter));
        return events;
    }
    // A component that is being ended gives back all of its nodes at its end.
    if run.stopping.is_none() && !run.keeps(part.node) && job.single_end(part.component).is_none() {
        let follows = shrink::left(run, part, &exit);
        events.push(part_ended(run, part, exit));
        events.extend(follows);
        return events;
    }
    let stop = if run.stopping.is_none() { stops_the_rest(job, run, part, &exit) } else { None };
    let component_over = components::decide::part_ended(job, run, part, &exit);
    events.push(part_ended(run, part, exit));
    events.extend(component_over);
    if let Some(reason) = stop {
        events.push(Event::RunStopping { job: run.job, run: run.id, reason, grace_seconds: None });
    }
    events
}

/// Whether the end of one part ends the others: the end of a script, any abnormal end, and the end of the last part
/// that did anything, since the others only hold resources.
fn stops_the_rest(job: &Job, run: &Run, part: &Part, exit: &NodeExit) -> Option<StopReason> {
    let mut rest = run.others(part).filter(|part| !part.has_ended());
    if job.single_end(part.component).is_some() {
        // It was being ended, however it ends; but the run must not continue if nothing is left that does anything.
        let is_last = works(job, run, part) && rest.all(|part| !works(job, run, part));
        return is_last.then_some(StopReason::PeerEnded);
    }
    match exit.cause {
        EndCause::Lost(_) => Some(StopReason::NodeLost),
        EndCause::LaunchFailed(_) | EndCause::Walltime | EndCause::OutOfMemory | EndCause::Aborted(_) => {
            Some(StopReason::PeerEnded)
        }
        EndCause::Itself | EndCause::Killed => {
            let script_ended = job.lead().program == ProgramKind::Script && run.is_lead(part);
            (script_ended || rest.all(|part| !works(job, run, part))).then_some(StopReason::PeerEnded)
        }
    }
}

/// Whether a part runs something by itself, rather than hold resources for steps.
fn works(job: &Job, run: &Run, part: &Part) -> bool {
    match job.components.get(part.component as usize).map(|component| &component.program) {
        Some(ProgramKind::Tasks) => true,
        Some(ProgramKind::Script) => {
            run.parts.iter().find(|other| other.component == part.component).is_some_and(|first| first.is(part))
        }
        _ => false,
    }
}

fn end_run(state: &State, job: &Job, run: &Run, last: &Part, exit: NodeExit, reporter: Reporter) -> [Event; 2] {
    let mut exits: Vec<(&Part, &NodeExit)> =
        run.parts.iter().filter_map(|part| Some((part, if part.is(last) { &exit } else { part.exit()? }))).collect();
    let used = exits.iter().map(|(_, exit)| exit.usage).chain(job.components_over().map(|(_, over)| over.usage));
    let usage = used.fold(run.left_usage, Usage::plus);
    // Components ended alone do not count for the job's outcome.
    exits.retain(|(part, _)| job.single_end(part.component).is_none());
    let outcome = outcome(state, job, run, &exits);
    let lasted = exits.iter().filter_map(|(_, exit)| Some(exit.ended.micros_since(exit.started?))).max();
    let has_begun = run.started.is_some() || exits.iter().any(|(_, exit)| exit.started.is_some());
    let next = aftermath(state, job, &outcome, Lasted { micros: lasted.unwrap_or(0), has_begun });
    let last = (reporter == Reporter::Node).then(|| NodePart {
        node: last.node,
        component: last.component,
        exit: exit.clone(),
    });
    [Event::RunEnded { job: run.job, run: run.id, last, outcome, usage }, next]
}

/// The end of a run that was never launched and is stopped, and what becomes of its job.
pub(crate) fn never_launched(state: &State, run: &Run, reason: StopReason) -> Vec<Event> {
    let Some(job) = state.job(run.job) else { return Vec::new() };
    let stopped = Run { stopping: Some(reason), ..run.clone() };
    let outcome = outcome(state, job, &stopped, &[]);
    let next = aftermath(state, job, &outcome, Lasted { micros: 0, has_begun: run.started.is_some() });
    vec![Event::RunEnded { job: run.job, run: run.id, last: None, outcome, usage: Usage::default() }, next]
}

/// The outcome of a run: the reason for which it was stopped, else what its nodes report.
fn outcome(state: &State, job: &Job, run: &Run, exits: &[(&Part, &NodeExit)]) -> Outcome {
    match run.stopping {
        Some(StopReason::Cancelled | StopReason::CancelledAtOnce) => Outcome::Cancelled,
        Some(StopReason::Requeued | StopReason::Repeated) => Outcome::Requeued,
        Some(StopReason::Preempted) => Outcome::Preempted,
        Some(StopReason::NodeLost) => Outcome::NodeLost(how_lost(state, run, exits)),
        Some(StopReason::LaunchTimeout) => {
            let seconds = state.launch_timeout(&run.placement);
            Outcome::LaunchFailed(format!("not all nodes confirmed the launch within {seconds} s"))
        }
        Some(StopReason::Finished | StopReason::FinishedAtOnce) => Outcome::DeclaredFinished,
        Some(StopReason::Concluded(status)) if status.is_success() => Outcome::Completed,
        Some(StopReason::Concluded(status)) => Outcome::Failed(status),
        Some(StopReason::Walltime) => Outcome::TimedOut,
        Some(StopReason::PeerEnded | StopReason::TasksEnded) | None => match outcome_of_exits(state, job, run, exits) {
            Outcome::Completed => outcome_of_tasks(job),
            outcome => outcome,
        },
    }
}

/// Which node of a run was lost, and how: the first part lost with it says so, else the operator who took the node
/// down.
fn how_lost(state: &State, run: &Run, exits: &[(&Part, &NodeExit)]) -> String {
    let name = |node: NodeId| state.node(node).map_or("a node that was removed", |node| &node.spec.name);
    let lost = exits.iter().find_map(|(part, exit)| match &exit.cause {
        EndCause::Lost(why) => Some(format!("{}: {why}", name(part.node))),
        _ => None,
    });
    let taken_down = || {
        let down = |part: &&Part| state.taken_out(part.node).is_some_and(|taken| taken.is_down);
        let node = run.parts.iter().find(down)?.node;
        let reason = state.node(node)?.drained.as_deref()?;
        Some(format!("{} was taken down: {reason}", name(node)))
    };
    lost.or_else(taken_down).unwrap_or_else(|| "a node of the run was lost".to_owned())
}

/// A list of tasks has failed if one of its tasks has (HPC-J-21).
fn outcome_of_tasks(job: &Job) -> Outcome {
    job.tasks.as_ref().and_then(|tasks| tasks.failure.clone()).unwrap_or(Outcome::Completed)
}

fn outcome_of_exits(state: &State, job: &Job, run: &Run, exits: &[(&Part, &NodeExit)]) -> Outcome {
    let has = |cause: EndCause| exits.iter().any(|(_, exit)| exit.cause == cause);
    if has(EndCause::Walltime) {
        return Outcome::TimedOut;
    }
    if has(EndCause::OutOfMemory) {
        return Outcome::OutOfMemory;
    }
    for (_, exit) in exits {
        if let EndCause::LaunchFailed(why) = &exit.cause {
            return Outcome::LaunchFailed(why.clone());
        }
    }
    if exits.iter().any(|(_, exit)| matches!(exit.cause, EndCause::Lost(_))) {
        return Outcome::NodeLost(how_lost(state, run, exits));
    }
    // A script decides for its whole run; the other nodes only hold resources.
    let speaks = |part: &Part| match job.lead().program {
        ProgramKind::Script => run.is_lead(part),
        _ => works(job, run, part),
    };
    let speaking = || exits.iter().filter(|(part, _)| speaks(part)).map(|(_, exit)| *exit);
    let by_itself = speaking().filter(|exit| exit.cause == EndCause::Itself);
    let killed = speaking().filter(|exit| exit.cause != EndCause::Itself);
    let failed = |exit: &&NodeExit| exit.status.is_some_and(|status| !status.is_success());
    let first = by_itself.chain(killed).find(failed).and_then(|exit| exit.status);
    first.map_or(Outcome::Completed, Outcome::Failed)
}

/// How long a run has lasted.
#[derive(Clone, Copy)]
struct Lasted {
    /// From the start of its processes, in microseconds.
    micros: i64,
    /// Whether a process of the job has begun.
    has_begun: bool,
}

/// What happens to a job after a run.
fn aftermath(state: &State, job: &Job, outcome: &Outcome, lasted: Lasted) -> Event {
    match requeue_reason(state, job, outcome, lasted) {
        // It would wait forever. A requeue on request gets all nodes again.
        Some(reason)
            if reason != StopReason::Requeued
                && let Some(why) = too_few_prepared(state, job) =>
        {
            Event::JobFinished { job: job.id, outcome: Outcome::LaunchFailed(why) }
        }
        Some(reason) => Event::JobRequeued { job: job.id, reason },
        None if is_repeated(state, job, outcome) => Event::JobRequeued { job: job.id, reason: StopReason::Repeated },
        None => Event::JobFinished { job: job.id, outcome: outcome.clone() },
    }
}

/// Whether a job of a table runs again at the next of its times: unless somebody has ended it.
fn is_repeated(state: &State, job: &Job, outcome: &Outcome) -> bool {
    let was_ended = matches!(outcome, Outcome::Cancelled | Outcome::DeclaredFinished);
    !was_ended && state.repeats_at(job, state.time()).is_some()
}

/// Why a job can never run without the nodes that could not be prepared for it (HPC-J-22).
fn too_few_prepared(state: &State, job: &Job) -> Option<String> {
    let names = state.unprepared_nodes(job);
    if names.is_empty() {
        return None;
    }
    let lead = job.lead();
    let alternatives = requests::without_nodes(&lead.shape.alternatives, &names);
    let queue = state.queue(&lead.queue)?;
    let why = fits::never_fits(state, &queue.spec, &alternatives)?;
    Some(format!("{} could not be prepared for it, and without: {why}", names.join(", ")))
}

impl State {
    /// Whether a running job waits again if it has to make way for another.
    pub fn comes_back_if_preempted(&self, job: &Job) -> bool {
        requeue_reason(self, job, &Outcome::Preempted, Lasted { micros: 0, has_begun: true }).is_some()
    }
}

fn requeue_reason(state: &State, job: &Job, outcome: &Outcome, lasted: Lasted) -> Option<StopReason> {
    if *outcome == Outcome::Requeued {
        return Some(StopReason::Requeued);
    }
    // None of its work is lost (HPC-S-13).
    let is_cancelled = state.cancels_preempted(job);
    if *outcome == Outcome::Preempted && job.tasks.is_some() && !is_cancelled {
        return Some(StopReason::Preempted);
    }
    let default = RequeuePolicy::default();
    let policy = job.extras.as_ref().map_or(&default, |extras| &extras.requeue);
    // It is no fault of its own, so however often it happens (OAR-T-22).
    let comes_back = || job.types().contains(&JobType::BestEffort { requeue: true });
    if *outcome == Outcome::Preempted && (policy.on_node_lost && !is_cancelled || comes_back()) {
        return Some(StopReason::Preempted);
    }
    if job.attempts >= policy.max_runs {
        return None;
    }
    match outcome {
        Outcome::NodeLost(_) if policy.on_node_lost => Some(StopReason::NodeLost),
        Outcome::NodeLost(_) if !lasted.has_begun && job.attempts <= policy.unbegun_runs => Some(StopReason::NodeLost),
        Outcome::Failed(ExitStatus::Code(code)) if policy.on_exit_codes.contains(&i32::from(*code)) => {
            let least = i64::from(policy.exit_codes_after_seconds) * MICROS_PER_SECOND;
            (least == 0 || lasted.micros > least).then_some(StopReason::Requeued)
        }
        _ => None,
    }
}
