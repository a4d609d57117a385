//! Makes records from the core's views.

use super::{ArrayPlace, ArrayTasks, HetPlace, JobRecord, NodePart, Person, RequestRecord};
use crate::{
    attributes::{self, Attributes},
    duration,
    job_id::{component_number, component_set},
    size::MEGABYTE,
    words::{ExitCode, State, ended_reason, waiting_reason},
};
use muster_schemas::{
    cluster::QueueSpec,
    event::StopReason,
    job::{Component, Holds, JobState as CoreState},
    resources::IndexSet,
    time::Timestamp,
    views::{
        ComponentView, HeldTasksView, JobDetail, JobView, OutcomeView, OutcomeWord, ReasonView, ReasonWord,
        RunNodeView, RunView,
    },
};
use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

/// The limit on running tasks of an array after it was removed.
pub const NO_LIMIT: u32 = u32::MAX;

/// Information that views of jobs lack.
pub struct Sources<'a> {
    /// The queue with this name.
    pub queue: &'a dyn Fn(&str) -> Option<&'a QueueSpec>,
    /// The numbers and the group of a login name.
    pub person: &'a dyn Fn(&str) -> Person,
    /// The name of a group.
    pub group: &'a dyn Fn(u32) -> Arc<str>,
}

/// The records of a job without its details: one for each component; for an array also one for each group of tasks that
/// are held separately, or that never started and ended the same way.
pub fn of_view(mut view: JobView, sources: &Sources<'_>) -> impl Iterator<Item = JobRecord> + use<> {
    let components = view.components.max(1);
    settle_reason(&mut view);
    let by_component = std::mem::take(&mut view.by_component);
    let reason = view.reason.clone().filter(|_| !by_component.is_empty());
    let reasons: Vec<Cow<'static, str>> =
        by_component.iter().map(|component| waiting(reason.as_ref(), component, sources)).collect();
    let mut singly = by_component.into_iter().zip(reasons);
    let never_started = view.array.as_mut().map(|array| std::mem::take(&mut array.never_started)).unwrap_or_default();
    let held = view.array.as_mut().map(|array| std::mem::take(&mut array.held)).unwrap_or_default();
    for tasks in &held {
        if let Some(array) = &mut view.array {
            array.remaining = array.remaining.difference(&tasks.indices);
        }
    }
    let of_array = view.holds;
    let record = plain(view, sources);
    let held: Vec<JobRecord> = held.iter().flat_map(|tasks| held_tasks(&record, tasks, of_array)).collect();
    let over: Vec<JobRecord> = never_started.into_iter().map(|(word, tasks)| never_run(&record, word, tasks)).collect();
    let leader = record.number;
    let set: Option<Arc<str>> = (components > 1).then(|| component_set(leader, components).into());
    // The last record takes what the others copy, so plain jobs, which are many, need no copy.
    let mut last = Some(record);
    let records = (0..components).filter_map(move |offset| {
        let mut record = if offset + 1 == components { last.take() } else { last.clone() }?;
        if let Some(set) = &set {
            record.number = component_number(leader, offset);
            record.het = Some(HetPlace { leader, offset, set: Arc::clone(set) });
        }
        if let Some((component, reason)) = singly.next() {
            stand(&mut record, component, reason);
        }
        Some(record)
    });
    records.chain(held).chain(over)
}

/// A dependency with a delay is still shown as a dependency: only a begin time is shown as one (SL-C-19).
fn settle_reason(view: &mut JobView) {
    let begins = || view.begin.into_iter().chain(view.by_component.iter().filter_map(|component| component.begin));
    let is_of_job = |reason: &ReasonView| begins().any(|begin| reason.text == format!("not before {begin}"));
    let is_delay = |reason: &&ReasonView| reason.code == ReasonWord::BeginTime && !is_of_job(reason);
    if view.reason.as_ref().filter(is_delay).is_some() {
        view.reason.iter_mut().for_each(|reason| reason.code = ReasonWord::Dependency);
    }
}

/// The separately held tasks of an array: each has its own line, the others wait for something else (SL-C-18).
fn held_tasks(record: &JobRecord, tasks: &HeldTasksView, of_array: Holds) -> Vec<JobRecord> {
    let reason = waiting_reason(None, tasks.holds.union(of_array), None);
    let waits = JobRecord {
        priority: 0,
        state: State::Pending,
        reason,
        eligible: None,
        started: None,
        expected_start: None,
        nodes: Vec::new(),
        ..record.clone()
    };
    let line = |index| {
        let mut task = waits.clone();
        task.narrow_to(index);
        task
    };
    tasks.indices.iter().map(line).collect()
}

/// The tasks of an array that never started and ended the same way.
fn never_run(record: &JobRecord, outcome: OutcomeWord, tasks: IndexSet) -> JobRecord {
    let outcome = OutcomeView { outcome, exit_status: None, detail: None };
    let place = record.array.clone().map(|array| ArrayPlace { tasks: ArrayTasks::Waiting(tasks), ..array });
    JobRecord {
        array: place,
        state: State::ended(outcome.outcome),
        reason: ended_reason(&outcome),
        exit: ExitCode::of(&outcome),
        started: None,
        nodes: Vec::new(),
        ..record.clone()
    }
}

/// The records of a job with all its details, one for each component, by offset.
pub fn of_detail(detail: &JobDetail, sources: &Sources<'_>) -> Vec<JobRecord> {
    let mut records: Vec<JobRecord> = of_view(detail.job.clone(), sources).collect();
    let latest = detail.job.run.and_then(|run| detail.runs.iter().find(|known| known.run == run));
    // Lists also set `redacted` where they omit long texts; only another user's job lacks the folder too.
    let is_hidden = detail.redacted && detail.spec.working_directory.is_empty();
    let attributes = Attributes(&detail.spec.attributes);
    let gid = attributes.job(attributes::job::GID).and_then(|number| number.parse().ok());
    let is_special = attributes.job(attributes::job::SPECIAL_EXIT).is_some();
    for record in &mut records {
        if is_special && record.state == State::RequeueHold {
            record.state = State::SpecialExit;
        }
        if let Some(gid) = gid.filter(|gid| *gid != record.person.gid) {
            record.person = Person { gid, group: (sources.group)(gid), ..record.person.clone() };
        }
        let offset = record.het.as_ref().map_or(0, |het| het.offset as usize);
        let Some(component) = detail.spec.components.get(offset) else { continue };
        let run = latest.filter(|_| !record.state.is_pending());
        let parts = run.map(|run| parts_of(run, offset)).unwrap_or_default();
        if detail.job.by_component.is_empty() {
            refine(record, component, &parts);
        }
        record.gpus = match parts.as_slice() {
            [] => super::request::Asked::of(component).gpus,
            parts => parts.iter().map(|part| part.gpus.len()).sum(),
        };
        if let Some(list) = attributes.component(offset, attributes::component::PARTITION)
            && record.state.is_pending()
        {
            // Until it starts it may run in any of them.
            record.partition = list.to_owned();
        }
        if let Some(name) = attributes.component(offset, attributes::component::JOB_NAME) {
            name.clone_into(&mut record.name);
        }
        let request = RequestRecord::of(detail, offset, record);
        record.request = Some(Box::new(if is_hidden { request.without_paths() } else { request }));
    }
    records
}

/// Why a component waits. While others are held, one that is not has not been considered yet (SL-M-11).
fn waiting(reason: Option<&ReasonView>, component: &ComponentView, sources: &Sources<'_>) -> Cow<'static, str> {
    let is_held = |reason: &&ReasonView| reason.code == ReasonWord::Held;
    match reason.filter(is_held) {
        Some(_) if component.holds.is_empty() => Cow::Borrowed("None"),
        _ => waiting_reason(reason, component.holds, (sources.queue)(&component.queue)),
    }
}

/// The state of a component, which can differ from that of its job (SL-M-02, SL-M-04, SL-M-07).
fn stand(record: &mut JobRecord, component: ComponentView, reason: Cow<'static, str>) {
    if record.state.is_pending() {
        record.reason = reason;
        record.eligible = component
            .holds
            .is_empty()
            .then(|| component.begin.map_or(record.submitted, |begin| begin.max(record.submitted)));
        if component.holds.is_empty() {
            record.state = State::Pending;
        }
    }
    if matches!(record.state, State::Running | State::Stopped) {
        record.state = if component.is_stopped { State::Stopped } else { State::Running };
    }
    if component.state == CoreState::Finishing && record.state.is_placed() {
        // A component only ends alone if somebody ended it.
        record.is_cancelled |= record.state != State::Completing;
        record.state = State::Completing;
    }
    if let Some(outcome) = &component.outcome {
        record.state = State::ended(outcome.outcome);
        record.exit = ExitCode::of(outcome);
        record.reason = ended_reason(outcome);
        record.ended = component.ended;
    }
    record.expected_start = component.expected_start;
    record.planned_nodes = component.planned_nodes;
    record.partition = component.queue;
    record.account = component.account;
    record.qos = component.class;
    let priority = component.priority.saturating_add(component.class_priority);
    record.priority = shown_priority(priority, !component.holds.is_empty());
    (record.own_priority, record.class_priority) = (component.priority, component.class_priority);
    record.limit_seconds = duration::limit_seconds(component.walltime_seconds);
    record.reservation = component.reservation;
    record.nodes = component.nodes;
    record.node_count = component.node_count;
    record.tasks = component.tasks;
    record.cpus = component.cores;
}

fn plain(view: JobView, sources: &Sources<'_>) -> JobRecord {
    let state = State::of(&view);
    let reason = match &view.outcome {
        Some(outcome) => ended_reason(outcome),
        None if state.is_pending() => waiting_reason(view.reason.as_ref(), view.holds, (sources.queue)(&view.queue)),
        None => Cow::Borrowed("None"),
    };
    let (array, eligible) = (array_place(&view), eligible(&view, state));
    JobRecord {
        number: view.own_number(),
        het: None,
        array,
        person: (sources.person)(&view.owner),
        exit: view.outcome.as_ref().map(ExitCode::of).unwrap_or_default(),
        name: view.name,
        user: view.owner,
        partition: view.queue,
        account: view.account,
        qos: view.class,
        priority: shown_priority(view.priority.saturating_add(view.class_priority), !view.holds.is_empty()),
        own_priority: view.priority,
        class_priority: view.class_priority,
        state,
        reason,
        submitted: view.submitted,
        eligible,
        // The start of an earlier attempt says nothing about the next.
        started: view.started.filter(|_| !state.is_pending()),
        expected_start: view.slot_start.or(view.predicted_start),
        planned_nodes: Vec::new(),
        ended: view.ended,
        limit_seconds: duration::limit_seconds(view.walltime_seconds),
        is_repeated: view.is_repeated,
        suspended_seconds: 0,
        suspended_since: None,
        nodes: view.nodes,
        node_count: view.node_count,
        parts: Vec::new(),
        tasks: view.tasks,
        cpus: view.cores,
        gpus: 0,
        reservation: view.reservation,
        restarts: view.runs.saturating_sub(u32::from(view.state > CoreState::Queued)),
        is_cancelled: matches!(view.stopping, Some(StopReason::Cancelled | StopReason::CancelledAtOnce)),
        request: None,
    }
}

/// A held waiting job is not eligible; others are from their begin time.
fn eligible(view: &JobView, state: State) -> Option<Timestamp> {
    (!state.is_pending() || view.holds.is_empty())
        .then(|| view.begin.map_or(view.submitted, |begin| begin.max(view.submitted)))
}

fn array_place(view: &JobView) -> Option<ArrayPlace> {
    if let Some(index) = view.id.index {
        let (number, tasks) = (view.id.number, ArrayTasks::One(index));
        return Some(ArrayPlace { number, tasks, most_running: None, numbered: Arc::default() });
    }
    let array = view.array.as_ref()?;
    let tasks = ArrayTasks::Waiting(array.remaining.clone());
    let numbered = Arc::new(array.numbered.clone());
    Some(ArrayPlace {
        number: view.id.number,
        tasks,
        most_running: array.max_running.filter(|most| *most != NO_LIMIT),
        numbered,
    })
}

fn parts_of(run: &RunView, offset: usize) -> Vec<&RunNodeView> {
    run.nodes.iter().filter(|node| usize::try_from(node.component) == Ok(offset)).collect()
}

/// The component's own information. The view of a job shows the current state of its first component, which can differ
/// from what was submitted; for other components there is only what was submitted.
fn refine(record: &mut JobRecord, component: &Component, parts: &[&RunNodeView]) {
    let asked = super::request::Asked::of(component);
    if record.het.as_ref().is_some_and(|het| het.offset > 0) {
        record.qos.clone_from(&component.class);
        as_submitted(record, component, asked.limit_seconds);
    }
    if parts.is_empty() && record.het.is_some() {
        (record.node_count, record.tasks, record.cpus) = (asked.nodes, asked.tasks, asked.cpus);
    }
    if !parts.is_empty() {
        let names: BTreeSet<&str> = parts.iter().map(|part| part.node.as_str()).collect();
        record.nodes = parts.iter().map(|part| part.node.clone()).collect();
        record.parts = parts.iter().map(|part| node_part(part)).collect();
        record.node_count = u32::try_from(names.len()).unwrap_or(u32::MAX);
        record.tasks = parts.iter().map(|part| part.tasks).sum();
        record.cpus = parts.iter().map(|part| part.cores.len()).sum();
    }
}

fn node_part(part: &RunNodeView) -> NodePart {
    NodePart {
        node: part.node.clone(),
        cores: part.cores.clone(),
        gpus: part.gpus.clone(),
        megabytes: part.memory_bytes / MEGABYTE,
    }
}

fn as_submitted(record: &mut JobRecord, component: &Component, limit_seconds: Option<u64>) {
    if let Some(queue) = &component.queue {
        record.partition.clone_from(queue);
    }
    if let Some(priority) = component.priority {
        record.own_priority = priority;
        record.priority = shown_priority(priority.saturating_add(record.class_priority), record.priority == 0);
    }
    record.account = component.account.clone().or(record.account.take());
    record.reservation.clone_from(&component.reservation);
    if !component.alternatives.is_empty() {
        record.limit_seconds = limit_seconds;
    }
}

/// A priority in Slurm's form: 0 means held, so every other job has at least 1.
fn shown_priority(own: i64, is_held: bool) -> i64 {
    if is_held { 0 } else { own.max(1) }
}
