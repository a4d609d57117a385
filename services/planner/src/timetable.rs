//! Runs, promises and predictions, as a table and as a chart.

mod accuracy;

pub use accuracy::Accuracy;

use crate::{
    chart::{Bar, BarKind, Gantt, Look, Row},
    engine::Engine,
    explain::nodes_of,
    model::NodeLoads,
    projection::expected_end,
};
use muster_domain::{State, jobs::Job};
use muster_schemas::{
    JobId, Timestamp,
    job::WaitReason,
    views::{
        NodePromise, ReasonView, Timetable, TimetableClosure, TimetableMarks, TimetableReservation, TimetableRun,
        TimetableSleep, TimetableWait,
    },
};
use std::collections::BTreeMap;

/// The part of the timetable that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Only jobs of this queue.
    pub queue: Option<String>,
    /// Maximum number of waiting jobs, first in order.
    pub limit: Option<usize>,
}

/// The timetable of a state, with which the engine must be in step: it follows the plan that would be made at `now`.
pub fn timetable(engine: &Engine, state: &State, now: Timestamp, part: &Part) -> Timetable {
    let mut planned = engine.clone();
    planned.set_capacity_freed(state.capacity_freed());
    planned.set_user_usage(state.share_use(now));
    planned.set_loads(NodeLoads::of(state));
    let before = planned.clone();
    let (plan, promises) = planned.pass_with_promises(now);
    let told: BTreeMap<JobId, &WaitReason> =
        plan.reasons.iter().map(|waiting| (waiting.job, &waiting.reason)).collect();
    let promised: BTreeMap<JobId, _> = promises.iter().map(|promise| (promise.job, promise)).collect();
    let in_queue = |job: &Job| part.queue.as_ref().is_none_or(|name| job.queues().any(|queue| **queue == **name));
    let jobs = (1..)
        .zip(before.order_of_looks(now, planned.order().collect()))
        .filter_map(|(place, id)| Some((place, state.job(id)?)));
    let mut waiting: Vec<(u64, &Job)> = jobs.filter(|(_, job)| in_queue(job)).collect();
    let limit = part.limit.unwrap_or(usize::MAX);
    let more_waiting = waiting.len().saturating_sub(limit) as u64;
    waiting.truncate(limit);
    let waiting = waiting.into_iter().map(|(place, job)| {
        let slot = planned.slot(job.id).map(|slot| (slot.start, slot.placement));
        let promise = || promised.get(&job.id).map(|one| (one.start, planned.real_placement(&one.placement)));
        let slot = slot.or_else(promise);
        let start = plan.starts.iter().find(|start| start.job.whole() == job.id || start.job == job.id);
        let reason = told.get(&job.id).map(|reason| (*reason).clone()).or_else(|| state.wait_reason(job));
        let foreseen = job.predicted_start.map(|start| start.max(now));
        TimetableWait {
            place,
            job: job.id,
            user: job.owner.user.clone(),
            queue: job.lead().queue.to_string(),
            walltime_seconds: longest_walltime(job),
            reason: reason.filter(|_| start.is_none()).as_ref().map(ReasonView::from),
            expected_start: if start.is_some() {
                Some(now)
            } else {
                slot.as_ref().map(|(start, _)| *start).or(foreseen)
            },
            promised_start: slot.as_ref().map(|(start, _)| *start),
            nodes: slot.map_or_else(Vec::new, |(_, placement)| nodes_of(state, &placement)),
            marks: marks(state, job),
        }
    });
    Timetable {
        sequence: state.sequence(),
        time: now,
        policy: state.policy().name.clone(),
        waiting: waiting.collect(),
        more_waiting,
        running: runs(state, in_queue),
        reservations: reservations(state),
        closures: closures(state),
        unavailable_nodes: state
            .nodes()
            .filter(|node| !state.takes_jobs(node))
            .map(|node| node.spec.name.clone())
            .collect(),
        sleeping: sleeping(state),
    }
}

fn marks(state: &State, job: &Job) -> TimetableMarks {
    let makes_way = |component: &muster_domain::jobs::Component| {
        component.class().is_some_and(|class| state.accounts().is_preempted(class))
    };
    TimetableMarks {
        opens_domain: job.opens_domain().map(|name| name.into_owned()),
        domain: job.domain().map(|name| name.into_owned()),
        makes_way: job.components.iter().all(makes_way),
        has_fixed_start: job.fixed_time().is_some(),
    }
}

fn sleeping(state: &State) -> Vec<TimetableSleep> {
    let sleeps = state.nodes().filter_map(|node| {
        let power = state.power_of(node.id)?;
        Some(TimetableSleep { node: node.spec.name.clone(), phase: power.phase, since: power.since })
    });
    sleeps.collect()
}

/// The longest walltime of a job's components; `None` if one has none.
fn longest_walltime(job: &Job) -> Option<u64> {
    let alternatives = job.components.iter().flat_map(|component| component.shape.alternatives.iter());
    let walltimes: Option<Vec<u64>> = alternatives.map(|alternative| alternative.walltime_seconds).collect();
    walltimes?.into_iter().max()
}

fn runs(state: &State, in_queue: impl Fn(&Job) -> bool) -> Vec<TimetableRun> {
    let runs = state.runs().filter_map(|run| Some((run, state.job(run.job)?))).filter(|(_, job)| in_queue(job));
    let mut runs: Vec<TimetableRun> = runs
        .map(|(run, job)| TimetableRun {
            job: run.job,
            user: job.owner.user.clone(),
            queue: job.lead().queue.to_string(),
            start: run.allocated,
            expected_end: known(expected_end(job, run)),
            nodes: nodes_of(state, &run.placement),
            marks: marks(state, job),
        })
        .collect();
    runs.sort_by_key(|run| (run.expected_end.unwrap_or(Timestamp::MAX), run.job));
    runs
}

fn reservations(state: &State) -> Vec<TimetableReservation> {
    let view = |reservation: &muster_domain::reservations::Reservation| {
        let (start, end) = reservation.period(state.time());
        TimetableReservation {
            name: reservation.spec.name.clone(),
            start,
            end,
            nodes: reservation.nodes.iter().map(|node| state.node_name(*node).into_owned()).collect(),
            asked: reservation.spec.nodes.clone(),
        }
    };
    let mut reservations: Vec<TimetableReservation> = state.reservations().map(view).collect();
    reservations.sort_by(|one, other| (one.start, &one.name).cmp(&(other.start, &other.name)));
    reservations
}

fn closures(state: &State) -> Vec<TimetableClosure> {
    let mut closures: Vec<TimetableClosure> = Vec::new();
    for node in state.nodes() {
        closures.extend(node.closures.iter().map(|closure| TimetableClosure {
            node: node.spec.name.clone(),
            from: closure.from,
            until: known(closure.until),
            reason: closure.reason.clone(),
        }));
    }
    closures.sort_by(|one, other| (one.from, &one.node).cmp(&(other.from, &other.node)));
    closures
}

fn known(time: Timestamp) -> Option<Timestamp> {
    (time < Timestamp::MAX).then_some(time)
}

/// The timetable as a chart with a row for each named node, from the beginning of the oldest run to the last known end.
/// Jobs with a foreseen start but no place are left out.
pub fn gantt(table: &Timetable, nodes: &[String]) -> Gantt {
    let mut rows: BTreeMap<&str, Vec<Bar>> = nodes.iter().map(|name| (name.as_str(), Vec::new())).collect();
    for run in &table.running {
        let until = run.expected_end.unwrap_or(Timestamp::MAX);
        let what = format!("job {} of {}, queue {}, runs", run.job, run.user, run.queue);
        let bar = bar_of_job(BarKind::Run, run.job, &what, (run.start, until), &run.marks);
        put(&mut rows, &bar, &run.nodes);
    }
    for wait in &table.waiting {
        let Some(start) = wait.promised_start else { continue };
        let seconds = wait.walltime_seconds.and_then(|seconds| i64::try_from(seconds).ok());
        let until = seconds.map_or(Timestamp::MAX, |seconds| start.plus_seconds(seconds));
        let what = format!("job {} of {}, queue {}, reserved", wait.job, wait.user, wait.queue);
        let bar = bar_of_job(BarKind::Slot, wait.job, &what, (start, until), &wait.marks);
        put(&mut rows, &bar, &wait.nodes);
    }
    for reservation in &table.reservations {
        for node in &reservation.nodes {
            let what = format!("reservation {}", reservation.name);
            let bar = bar(BarKind::Reservation, &reservation.name, &what, (reservation.start, reservation.end));
            rows.entry(node).or_default().push(bar);
        }
    }
    for closure in &table.closures {
        let until = closure.until.unwrap_or(Timestamp::MAX);
        let bar = bar(BarKind::Closure, &closure.reason, &closure.reason, (closure.from, until));
        rows.entry(&closure.node).or_default().push(bar);
    }
    for sleep in &table.sleeping {
        let label = sleep.phase.to_string();
        rows.entry(&sleep.node).or_default().push(bar(BarKind::Asleep, &label, &label, (sleep.since, Timestamp::MAX)));
    }
    let bars = || rows.values().flatten();
    let moments = || bars().flat_map(|bar| [bar.from, bar.until]).filter(|at| *at < Timestamp::MAX);
    let runs = bars().filter(|bar| bar.kind == BarKind::Run);
    let from = runs.map(|bar| bar.from).min().unwrap_or(table.time).min(table.time);
    let until = moments().max().unwrap_or(table.time).max(table.time.plus_seconds(60));
    let row = |name: &String| Row { label: name.clone(), bars: rows.get(name.as_str()).cloned().unwrap_or_default() };
    Gantt {
        title: format!("Plan of {} under policy {}", table.time, table.policy),
        from,
        until,
        now: table.time,
        rows: nodes.iter().map(row).collect(),
    }
}

/// A job's bar, which says in words and by its look what sets the job apart.
fn bar_of_job(kind: BarKind, job: JobId, what: &str, time: (Timestamp, Timestamp), marks: &TimetableMarks) -> Bar {
    let id = job.to_string();
    let mut notes = Vec::new();
    if let Some(name) = &marks.opens_domain {
        notes.push(if *name == id { "domain".to_owned() } else { format!("domain {name}") });
    }
    notes.extend(marks.domain.iter().map(|name| format!("in {name}")));
    notes.extend(marks.makes_way.then(|| "best effort".to_owned()));
    notes.extend(marks.has_fixed_start.then(|| "fixed start".to_owned()));
    let look = Look {
        note: notes.join(", "),
        opens: marks.opens_domain.clone(),
        inside: marks.domain.clone(),
        makes_way: marks.makes_way,
        is_fixed: marks.has_fixed_start,
    };
    let what = if notes.is_empty() { what.to_owned() } else { format!("{what} ({})", look.note) };
    Bar { look, ..bar(kind, &id, &what, time) }
}

/// A bar on each of its nodes.
fn put<'t>(rows: &mut BTreeMap<&'t str, Vec<Bar>>, bar: &Bar, nodes: &'t [NodePromise]) {
    for node in nodes {
        let tooltip = format!("{}: {} cores", bar.tooltip, node.cores);
        rows.entry(&node.node).or_default().push(Bar { tooltip, ..bar.clone() });
    }
}

fn bar(kind: BarKind, label: &str, what: &str, (from, until): (Timestamp, Timestamp)) -> Bar {
    let end = known(until).map_or_else(|| "with no known end".to_owned(), |until| format!("to {until}"));
    let tooltip = format!("{what}, {from} {end}");
    Bar { kind, label: label.to_owned(), tooltip, from, until, look: Look::default() }
}
