//! Changes of a request with which the job would start at once.
//!
//! The smallest size of a change is found by halving against what the job finds at its turn. Each change is then
//! decided by the rules of the domain, as if the owner asked for it, and planned with; only changes that start the job
//! are shown.

use super::Outlook;
use crate::{
    engine::Engine,
    model::{ComponentDemand, Demand, QueuedJob},
    projection::asked_by_name,
};
use muster_domain::{State, decide, jobs::Job};
use muster_schemas::{
    Timestamp,
    command::{Command, JobSelection},
    event::{Actor, Event, JobChange},
    resources::{Alternative, Count, Level, Per, Request, size_texts},
    views::{ChangeKind, SuggestedChange},
};
use std::{collections::BTreeSet, sync::Arc};

/// The most changes that are planned with, so that an explanation takes bounded time.
const MAX_PLANS: u32 = 12;
/// A walltime without bound is shortened to a year at most.
const LONGEST_MINUTES: u64 = 366 * 24 * 60;
const MIB: u64 = 1 << 20;

/// Changes that help, the smallest first.
pub(super) fn that_help(outlook: &Outlook, state: &State, job: &Job) -> Vec<SuggestedChange> {
    let mut trials = Trials { outlook, state, job, plans_left: MAX_PLANS };
    let mut changes = Vec::new();
    changes.extend(trials.shorter());
    for number in 0..job.components.len() {
        for shrink in SHRINKS {
            changes.extend(trials.smaller(number, shrink));
        }
    }
    changes.extend(trials.other_queues());
    for number in 0..job.components.len() {
        changes.extend(trials.other_alternatives(number));
    }
    changes.sort_by_key(|change| change.kind);
    changes
}

/// An amount of a request that can be reduced.
struct Shrink {
    kind: ChangeKind,
    /// The present amount, and the least that makes sense.
    range: fn(&Request) -> Option<(u64, u64)>,
    set: fn(&mut Request, u64),
    tell: fn(&Request, u64) -> String,
}

const SHRINKS: [Shrink; 5] = [
    Shrink {
        kind: ChangeKind::Nodes,
        range: |request| node_count(request).map(|nodes| (nodes.into(), 1)),
        set: set_nodes,
        tell: |request, nodes| instead(nodes, node_count(request).unwrap_or(0).into(), "node", ""),
    },
    Shrink {
        kind: ChangeKind::Tasks,
        range: |request| Some((request.tasks?.into(), node_count(request).unwrap_or(1).into())),
        set: |request, tasks| request.tasks = Some(narrow(tasks)),
        tell: |request, tasks| instead(tasks, request.tasks.unwrap_or(0).into(), "task", ""),
    },
    Shrink {
        kind: ChangeKind::CpusPerTask,
        range: |request| Some((request.cpus_per_task.into(), 1)),
        set: |request, cores| request.cpus_per_task = narrow(cores),
        tell: |request, cores| instead(cores, request.cpus_per_task.into(), "core", " for each task"),
    },
    Shrink {
        kind: ChangeKind::Memory,
        range: |request| Some((request.memory?.bytes / MIB, 1)),
        set: |request, mebibytes| {
            if let Some(memory) = &mut request.memory {
                memory.bytes = mebibytes * MIB;
            }
        },
        tell: |request, mebibytes| {
            let Some(memory) = request.memory else { return String::new() };
            let (new, old) = size_texts(mebibytes * MIB, memory.bytes);
            format!("{new} memory{} instead of {old}", per(memory.per))
        },
    },
    Shrink {
        kind: ChangeKind::Gpus,
        range: |request| Some((request.gpus.as_ref().filter(|_| request.more_gpus.is_empty())?.count.into(), 0)),
        set: |request, count| {
            request.gpus = request.gpus.take().filter(|_| count > 0).map(|mut gpus| {
                gpus.count = narrow(count);
                gpus
            });
        },
        tell: |request, count| {
            let Some(gpus) = &request.gpus else { return String::new() };
            instead(count, gpus.count.into(), "GPU", per(gpus.per))
        },
    },
];

/// Tries changes on a job.
struct Trials<'t> {
    outlook: &'t Outlook<'t>,
    state: &'t State,
    job: &'t Job,
    plans_left: u32,
}

impl Trials<'_> {
    /// The longest walltime with which it starts, in whole minutes if it is more than one.
    fn shorter(&mut self) -> Option<SuggestedChange> {
        let demand = self.outlook.job.demand.clone();
        let alternatives = || demand.components.iter().flat_map(|component| component.alternatives.iter());
        let longest = alternatives()
            .map(|alternative| alternative.walltime_seconds)
            .max_by_key(|walltime| walltime.unwrap_or(u64::MAX))?;
        let unit = if longest.is_some_and(|seconds| seconds <= 60) { 1 } else { 60 };
        let most = longest.map_or(LONGEST_MINUTES, |seconds| (seconds - 1) / unit);
        let with = |count: u64| JobChange { walltime_seconds: Some(count * unit), ..JobChange::default() };
        let old = longest.map_or_else(|| "no limit".to_owned(), duration);
        let tell = |count: u64| format!("walltime {} instead of {old}", duration(count * unit));
        self.largest(ChangeKind::Walltime, 1, most, &with, &tell)
    }

    fn smaller(&mut self, number: usize, shrink: Shrink) -> Option<SuggestedChange> {
        let job = self.job;
        let component = &job.components[number];
        let [alternative] = &component.shape.alternatives[..] else { return None };
        let at = alternative
            .requests
            .iter()
            .position(|request| (shrink.range)(request).is_some_and(|(there_is, least)| there_is > least))?;
        let request = &alternative.requests[at];
        let (there_is, least) = (shrink.range)(request)?;
        let (only, of) = (self.number(number), self.of_component(number));
        let with = |count: u64| {
            let mut changed = alternative.clone();
            (shrink.set)(&mut changed.requests[at], count);
            JobChange { alternatives: Some(vec![changed]), component: only, ..JobChange::default() }
        };
        let tell = |count: u64| format!("{}{of}", (shrink.tell)(request, count));
        self.largest(shrink.kind, least, there_is - 1, &with, &tell)
    }

    fn other_queues(&mut self) -> Vec<SuggestedChange> {
        let queues = self.state.queues().map(|queue| &queue.spec);
        let others = queues.filter(|queue| queue.started && self.job.queues().any(|own| **own != *queue.name));
        let names: Vec<String> = others.map(|queue| queue.name.clone()).collect();
        let mut found = Vec::new();
        for name in names {
            let change = JobChange { queue: Some(name.clone()), ..JobChange::default() };
            let demand = changed(&self.outlook.job.demand, &change);
            if self.outlook.alone.fitting(&demand, self.outlook.now).is_some() {
                found.extend(self.checked(ChangeKind::Queue, change, format!("queue {name}")));
            }
        }
        found
    }

    fn other_alternatives(&mut self, number: usize) -> Vec<SuggestedChange> {
        let alternatives = self.job.components[number].shape.alternatives.clone();
        if alternatives.len() < 2 {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (at, alternative) in alternatives.iter().enumerate() {
            let change = JobChange {
                alternatives: Some(vec![alternative.clone()]),
                component: self.number(number),
                ..JobChange::default()
            };
            if self.fits(&changed(&self.outlook.job.demand, &change)) {
                let text =
                    format!("only alternative {} of {}{}", at + 1, alternatives.len(), self.of_component(number));
                found.extend(self.checked(ChangeKind::Alternative, change, text));
            }
        }
        found
    }

    /// The change by the largest count of `least..=most` that helps, if less helps more.
    fn largest(
        &mut self,
        kind: ChangeKind,
        least: u64,
        most: u64,
        with: &dyn Fn(u64) -> JobChange,
        tell: &dyn Fn(u64) -> String,
    ) -> Option<SuggestedChange> {
        let outlook = self.outlook;
        let demand = |count: u64| changed(&outlook.job.demand, &with(count));
        let at_turn = halve(least, most, |count| self.fits(&demand(count)));
        if let Some(count) = at_turn
            && let Some(change) = self.checked(kind, with(count), tell(count))
        {
            return Some(change);
        }
        // A smaller job can move forward in the order.
        let (alone, now) = (&outlook.alone, outlook.now);
        let first = halve(least, most, |count| alone.fitting(&demand(count), now).is_some());
        let count = first.filter(|count| at_turn != Some(*count))?;
        self.checked(kind, with(count), tell(count))
    }

    /// Whether it fits when its turn comes now, and no limit and no job in front is in its way.
    fn fits(&self, demand: &Demand) -> bool {
        let (turn, now) = (&self.outlook.turn, self.outlook.now);
        if turn.engine().crosses_window(demand, now) {
            return false;
        }
        turn.blocker(demand).is_none() && turn.limit(&self.outlook.job, demand).is_none() && turn.fits(demand)
    }

    /// The change, if the rules allow it and the plan that follows it starts the job.
    fn checked(&mut self, kind: ChangeKind, change: JobChange, text: String) -> Option<SuggestedChange> {
        if self.plans_left == 0 || !self.is_allowed(&change) {
            return None;
        }
        self.plans_left -= 1;
        let Outlook { engine, now, job, .. } = self.outlook;
        let demand = changed(&job.demand, &change);
        let changed = QueuedJob {
            attributes: job.attributes.as_ref().map(|_| Arc::new(asked_by_name(&demand, self.state.settings()))),
            demand: Arc::new(demand),
            // A job that changes queues goes to the end of the new one.
            arrival: if change.queue.is_some() { *now } else { job.arrival },
            slot: None,
            ..job.clone()
        };
        starts(engine, changed, *now).then_some(SuggestedChange { kind, text, change })
    }

    fn is_allowed(&self, change: &JobChange) -> bool {
        let actor = Actor::User((*self.job.owner).clone());
        let jobs = JobSelection::Ids(vec![self.job.id]);
        let command = Command::Modify { jobs, change: change.clone() };
        let now = self.outlook.now.max(self.state.time());
        let is_change = |event: &Event| matches!(event, Event::JobModified { .. });
        decide(self.state, &actor, &command, now).is_ok_and(|decision| decision.events.iter().any(is_change))
    }

    /// The number of a component, if there are several.
    fn number(&self, number: usize) -> Option<u32> {
        (self.job.components.len() > 1).then(|| u32::try_from(number).unwrap_or(u32::MAX))
    }

    fn of_component(&self, number: usize) -> String {
        self.number(number).map_or_else(String::new, |number| format!(" in component {number}"))
    }
}

/// Whether a plan starts the job, or a task of it, when it waits with this demand.
pub(super) fn starts(engine: &Engine, job: QueuedJob, now: Timestamp) -> bool {
    let mut engine = engine.clone().without_reasons();
    let id = job.id;
    // The job's promise is free again.
    engine.capacity_freed |= engine.slot(id).is_some();
    engine.enqueue(job);
    let plan = engine.pass(now, &BTreeSet::new());
    plan.starts.iter().any(|start| start.job == id || start.job.whole() == id)
}

/// The demand after a change.
fn changed(demand: &Demand, change: &JobChange) -> Demand {
    let component = |(number, component): (u32, &ComponentDemand)| {
        if change.component.is_some_and(|only| only != number) {
            return component.clone();
        }
        let mut alternatives: Vec<Alternative> =
            change.alternatives.clone().unwrap_or_else(|| component.alternatives.to_vec());
        if let Some(walltime) = change.walltime_seconds {
            let kept = walltime.saturating_add(demand.guard_seconds);
            alternatives.iter_mut().for_each(|alternative| alternative.walltime_seconds = Some(kept));
        }
        ComponentDemand {
            queue: change.queue.as_deref().map_or_else(|| component.queue.clone(), Into::into),
            reservation: component.reservation.clone(),
            deadline: component.deadline,
            alternatives: alternatives.into(),
        }
    };
    Demand { components: (0..).zip(&demand.components).map(component).collect(), ..demand.clone() }
}

/// The largest count that holds, if every smaller one holds too.
fn halve(least: u64, most: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if least > most || !holds(least) {
        return None;
    }
    let (mut low, mut high) = (least, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Some(low)
}

/// The least number of nodes that the path of a request counts.
fn node_count(request: &Request) -> Option<u32> {
    let part = request.path.iter().find(|part| part.level == Level::Node)?;
    match part.count {
        Count::Range { min, .. } => Some(min),
        Count::All | Count::Best | Count::BestHalf => None,
    }
}

/// Fewer nodes, with as many tasks on each as before.
fn set_nodes(request: &mut Request, nodes: u64) {
    let Some(before) = node_count(request) else { return };
    let nodes = narrow(nodes);
    if let Some(part) = request.path.iter_mut().find(|part| part.level == Level::Node)
        && let Count::Range { max, .. } = part.count
    {
        part.count = Count::Range { min: nodes, max: if max == before { nodes } else { max } };
    }
    request.tasks = request.tasks.map(|tasks| {
        let scaled = u64::from(tasks) * u64::from(nodes) / u64::from(before.max(1));
        narrow(scaled).max(nodes)
    });
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn instead(new: u64, old: u64, thing: &str, per: &str) -> String {
    let plural = if new == 1 { "" } else { "s" };
    format!("{new} {thing}{plural}{per} instead of {old}")
}

fn per(per: Per) -> &'static str {
    match per {
        Per::Node => " for each node",
        Per::Task => " for each task",
        Per::Core => " for each core",
        Per::Gpu => " for each GPU",
        Per::Request => "",
    }
}

/// A time for people: `2 h 30 min`.
pub(super) fn duration(seconds: u64) -> String {
    let parts = [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")];
    let told: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count} {unit}")).collect();
    if told.is_empty() { "0 s".to_owned() } else { told.join(" ") }
}
