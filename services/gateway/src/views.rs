//! From the state to what the API shows.

mod components;
mod filtering;
mod size;

use muster_domain::{
    OrderHead, State, WaitReasons,
    copies::CopyStage,
    jobs::{ArrayState, Job, Phase, RunSummary},
    nodes::Node,
    reservations::Reservation,
    runs::Run,
    staging::Buffer,
};
use muster_schemas::{
    JobId, RunId, Timestamp,
    cluster::NodeCondition,
    copies::CopyReport,
    event::{Event, NodePart, Record, ShrinkReason},
    filter::JobWarning,
    job::{JobState, Outcome, WaitReason},
    public::Names,
    resources::{IndexSet, Placement},
    views::{
        AccountsPage, ArrayView, AssociationUse, BufferView, CommentView, CopiesView, CopyWord, HeldTasksView, JobView,
        LicenceView, NodeStateWord, NodeView, NodesPage, OutcomeWord, QueueView, QueuesPage, ReasonWord,
        ReservationView, ReservationsPage, RunNodeView, RunView,
    },
};
use std::{borrow::Cow, collections::BTreeMap};

pub(crate) use components::cancels;
pub(crate) use filtering::{task_views, templates_page};
pub(crate) use size::{Size, node_names};

/// That files were not copied, without the reason.
const NOT_COPIED: &str = "the files could not be copied";

/// Texts about a job that can name files: only its owner and operators may see them.
#[derive(Debug, Default)]
pub(crate) struct Private {
    /// Why it waits.
    reason: Option<String>,
    /// Why its files were not copied.
    failure: Option<String>,
    /// The message and the warnings of its filters and of its staging program, if that was called.
    said: Option<(Option<String>, Vec<JobWarning>)>,
}

impl Private {
    /// The texts about a job or a task.
    pub(crate) fn of(state: &State, id: JobId) -> Self {
        let Some(job) = state.job(id).or_else(|| state.job(id.whole())) else { return Self::default() };
        let reason = state.gate_reason(job).filter(|reason| matches!(reason, WaitReason::StagingFailed(_)));
        let failure = job.copies.as_ref().and_then(|copies| copies.last.as_ref()?.failure.clone());
        let filtering = job.filters.as_ref().filter(|_| filtering::is_staged(job));
        let said = filtering.map(|filtering| (filtering.message.clone(), filtering.warnings.clone()));
        Self { reason: reason.map(|reason| reason.to_string()), failure, said }
    }

    /// Puts the texts in place of the facts that everybody may see.
    pub(crate) fn show(self, view: &mut JobView) {
        if let (Some(text), Some(reason)) = (self.reason, &mut view.reason)
            && reason.code == ReasonWord::StagingFailed
        {
            reason.text = text;
        }
        let last = view.copies.as_mut().and_then(|copies| copies.last.as_mut());
        if let (Some(text), Some(last)) = (self.failure, last)
            && last.failure.is_some()
        {
            last.failure = Some(text);
        }
        if let (Some(said), Some(filtering)) = (self.said, &mut view.filtering) {
            (filtering.message, filtering.warnings) = said;
        }
    }
}

/// What a run has had so far, whether it is over or not.
struct Latest<'a> {
    run: RunId,
    placement: Cow<'a, Placement>,
    started: Option<Timestamp>,
}

impl<'a> Latest<'a> {
    fn of(state: &'a State, job: &'a Job) -> Option<Self> {
        if let Some(run) = job.run().and_then(|id| state.run(id)) {
            return Some(Self { run: run.id, placement: run.kept_placement(), started: run.started });
        }
        let last: &RunSummary = job.last_run.as_deref()?;
        Some(Self { run: last.run, placement: Cow::Borrowed(&last.placement), started: last.started })
    }
}

/// Views of many jobs: what they are all compared with is determined once.
pub(crate) struct JobViews<'a> {
    state: &'a State,
    reasons: WaitReasons<'a>,
}

impl<'a> JobViews<'a> {
    /// Views of a state whose head of the order may be known.
    pub(crate) fn new(state: &'a State, head: OrderHead) -> Self {
        Self { state, reasons: state.wait_reasons_from(head) }
    }

    /// The head of the order, if it was needed.
    pub(crate) fn into_head(self) -> OrderHead {
        self.reasons.into_head()
    }

    /// The view of a job, an array, or a task that has started.
    pub(crate) fn of(&self, job: &Job) -> JobView {
        job_view(self.state, &self.reasons, job)
    }

    /// The view of a task of an array that has never started, or that is over and forgotten.
    pub(crate) fn of_task(&self, whole: &Job, index: u32) -> Option<JobView> {
        task_view(self.state, self.of(whole), whole, index)
    }
}

fn job_view(state: &State, reasons: &WaitReasons<'_>, job: &Job) -> JobView {
    let latest = Latest::of(state, job);
    let job_state = state.job_state(job);
    let waits = matches!(job_state, JobState::Held | JobState::Queued);
    let placed = latest.as_ref().filter(|_| !waits);
    let size = placed.map_or_else(|| Size::asked(&job.components), |latest| Size::of(&latest.placement));
    let lead = job.lead();
    let alternative = placed.and_then(|latest| latest.placement.components.first()).map_or(0, |part| part.alternative);
    let chosen = lead.shape.alternatives.get(alternative as usize).or(lead.shape.alternatives.first());
    JobView {
        id: job.id,
        number: state.number_of(job.id),
        name: job.name.to_string(),
        owner: job.owner.user.clone(),
        queue: lead.queue.to_string(),
        account: lead.account.as_deref().map(str::to_owned),
        class: lead.class().map(|class| class.to_string()),
        priority: lead.priority,
        class_priority: state.accounts().class_priority(lead),
        state: job_state,
        reason: reasons.of(job).as_ref().map(Into::into),
        holds: job.holds(),
        outcome: job.finished().map(|finished| (&finished.outcome).into()),
        submitted: job.submitted,
        begin: lead.extras.as_ref().and_then(|extras| extras.begin),
        started: latest.as_ref().and_then(|latest| latest.started),
        ended: job.finished().map(|finished| finished.at),
        walltime_seconds: chosen.and_then(|alternative| alternative.walltime_seconds),
        nodes: placed.map(|latest| node_names(state, &latest.placement)).unwrap_or_default(),
        node_count: size.nodes,
        tasks: size.tasks,
        cores: size.cores,
        components: u32::try_from(job.components.len()).unwrap_or(u32::MAX),
        run: latest.as_ref().map(|latest| latest.run),
        runs: job.attempts,
        reservation: lead.reservation().map(|name| name.to_string()),
        slot_start: job.slot.as_ref().map(|slot| slot.start),
        predicted_start: job.predicted_start,
        array: job.array.as_deref().map(|array| array_view(state, job, array)),
        filtering: filtering::filtering_view(state, job),
        elastic: filtering::elastic_view(state, job, placed.map(|latest| &*latest.placement)),
        by_component: components::views(state, job, job_state, placed.map(|latest| &*latest.placement)),
        stopping: job.run().and_then(|run| state.run(run)?.stopping),
        dialect: job.dialect.as_deref().map(str::to_owned),
        is_stopped: components::is_stopped(state, job, 0),
        is_repeated: state.is_repeated(job),
        copies: copies_view(state, job),
        is_resuming: job.run().and_then(|run| state.run(run)).is_some_and(Run::is_resuming),
        comment: state.comment_of(job).map(|(reason, until)| Box::new(CommentView { text: reason.to_string(), until })),
    }
}

/// How far the copying of a job's files is, if it has some.
fn copies_view(state: &State, job: &Job) -> Option<Box<CopiesView>> {
    let (files, copies) = (job.file_copies()?, job.copies.as_ref()?);
    let (stage, node) = match copies.stage {
        CopyStage::Wanted => (CopyWord::Wanted, None),
        CopyStage::Coming { node, run: Some(_), .. } => (CopyWord::Coming, Some(node)),
        CopyStage::Coming { node, run: None, .. } => (CopyWord::Ahead, Some(node)),
        CopyStage::In { node } => (CopyWord::Here, Some(node)),
        CopyStage::Failed => (CopyWord::Failed, None),
        CopyStage::Leaving { node, .. } => (CopyWord::Leaving, Some(node)),
        CopyStage::Out | CopyStage::Dropped { .. } => (CopyWord::Over, None),
    };
    Some(Box::new(CopiesView {
        stage,
        has_before: !files.before.is_empty(),
        node: node.map(|node| state.node_name(node).into_owned()),
        failures: copies.failures,
        last: copies
            .last
            .as_ref()
            .map(|last| CopyReport { failure: last.failure.as_ref().map(|_| NOT_COPIED.to_owned()), ..last.clone() }),
    }))
}

fn task_view(state: &State, mut view: JobView, whole: &Job, index: u32) -> Option<JobView> {
    let array = whole.array.as_deref()?;
    let outcome = array.task_outcome(index);
    if !array.remaining.contains(index) && outcome.is_none() {
        return None;
    }
    let held = array.held.get(&index).copied().unwrap_or_default();
    view.holds = view.holds.union(held);
    view.reason = match (outcome, view.holds.is_empty()) {
        (Some(_), _) => None,
        (None, true) => view.reason,
        (None, false) => Some((&WaitReason::Held(view.holds)).into()),
    };
    view.state = match outcome {
        Some(_) => JobState::Finished,
        None if !view.holds.is_empty() || state.gate_reason(whole).is_some() => JobState::Held,
        None => JobState::Queued,
    };
    Some(JobView {
        id: JobId::task(whole.id.number, index),
        number: state.number_of(JobId::task(whole.id.number, index)),
        outcome: outcome.map(Into::into),
        ended: None,
        array: None,
        ..view
    })
}

fn array_view(state: &State, job: &Job, array: &ArrayState) -> ArrayView {
    let mut finished = BTreeMap::new();
    for (outcome, indices) in &array.outcomes {
        *finished.entry(OutcomeWord::from(outcome)).or_insert(0) += indices.len();
    }
    ArrayView {
        total: array.tasks,
        remaining: array.remaining.clone(),
        waiting: array.remaining.len(),
        running: u64::from(array.unfinished),
        finished,
        max_running: array.max_running,
        never_started: never_started(state, job, array),
        numbered: state.numbered_tasks(job.id.number).cloned().unwrap_or_default(),
        held: held_tasks(array),
    }
}

fn held_tasks(array: &ArrayState) -> Vec<HeldTasksView> {
    let mut held: Vec<HeldTasksView> = Vec::new();
    for (index, holds) in &array.held {
        match held.iter_mut().find(|known| known.holds == *holds) {
            Some(known) => drop(known.indices.insert(*index)),
            None => held.push(HeldTasksView { indices: IndexSet::from_range(*index, *index), holds: *holds }),
        }
    }
    held
}

/// The tasks that are over and have no job of their own, where they can have come to that end without one. A task that has
/// started and was forgotten counts among them.
fn never_started(state: &State, job: &Job, array: &ArrayState) -> BTreeMap<OutcomeWord, IndexSet> {
    let ends = [Outcome::Cancelled, Outcome::DeadlineMissed, Outcome::DependencyNeverMet];
    let ended = ends.iter().filter_map(|outcome| Some((outcome, array.outcomes.get(outcome)?)));
    let ended: Vec<(&Outcome, &IndexSet)> = ended.collect();
    if ended.is_empty() {
        return BTreeMap::new();
    }
    let mut started = IndexSet::new();
    for index in state.job_with_tasks(job.id.number).filter_map(|task| task.id.index) {
        started.insert(index);
    }
    let never = ended.into_iter().map(|(outcome, indices)| (OutcomeWord::from(outcome), indices.difference(&started)));
    never.filter(|(_, indices)| !indices.is_empty()).collect()
}

/// All nodes.
pub(crate) fn nodes_page(state: &State) -> NodesPage {
    let nodes = state.nodes().map(|node| node_view(state, node)).collect();
    NodesPage { nodes, sequence: state.sequence(), time: state.time() }
}

/// One node.
pub(crate) fn node_view(state: &State, node: &Node) -> NodeView {
    let power = state.power_view(node);
    let lost = match &node.condition {
        NodeCondition::Lost(_) if power.is_some() => None,
        NodeCondition::Lost(reason) => Some(reason.clone()),
        _ => None,
    };
    let jobs = node.runs.iter().filter_map(|run| Some(state.run(*run)?.job));
    let taken_out = state.taken_out(node.id);
    let gpus = u32::try_from(node.spec.gpus.len()).unwrap_or(u32::MAX);
    let free = |free: u64| u32::try_from(free).unwrap_or(u32::MAX);
    NodeView {
        spec: (*node.spec).clone(),
        state: node_state(node),
        reason: lost.or_else(|| node.drained.clone()),
        cores_used: node.spec.cores.saturating_sub(free(node.free_cores.len())),
        memory_used_bytes: node.spec.memory_bytes.saturating_sub(node.free_memory_bytes),
        gpus_used: gpus.saturating_sub(free(node.free_gpus.len())),
        jobs: jobs.collect(),
        is_down: taken_out.is_some_and(|taken| taken.is_down),
        taken_out_by: taken_out.map(|taken| taken.by.to_string()),
        taken_out: taken_out.map(|taken| taken.at),
        closures: node.closures.clone(),
        reservations: state.reservations_of(node.id).map(|reservation| reservation.spec.name.clone()).collect(),
        gpu_faults: node.gpu_faults.clone(),
        load: state.node_load(node.id),
        power,
    }
}

/// All reservations.
pub(crate) fn reservations_page(state: &State) -> ReservationsPage {
    let view = |reservation: &Reservation| ReservationView {
        spec: (*reservation.spec).clone(),
        nodes: reservation.nodes.iter().map(|node| state.node_name(*node).into_owned()).collect(),
        begun: reservation.begun,
    };
    ReservationsPage {
        reservations: state.reservations().map(view).collect(),
        sequence: state.sequence(),
        time: state.time(),
    }
}

/// Whether a node serves, as one word: being lost weighs more than being drained.
pub(crate) fn node_state(node: &Node) -> NodeStateWord {
    match node.condition {
        NodeCondition::Lost(_) => NodeStateWord::Lost,
        _ if node.drained.is_some() => NodeStateWord::Drained,
        NodeCondition::Unknown => NodeStateWord::Unknown,
        NodeCondition::Up => NodeStateWord::Up,
    }
}

/// All queues and licences.
pub(crate) fn queues_page(state: &State) -> QueuesPage {
    let mut counts: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    for job in state.jobs() {
        let (queued, held, held_until) = counts.entry(&job.lead().queue).or_default();
        match waiting_tasks(state, job) {
            (JobState::Held, tasks) => {
                *held += tasks;
                *held_until += if waits_for_time(state, job) { tasks } else { 0 };
            }
            (JobState::Queued, tasks) => *queued += tasks,
            _ => {}
        }
    }
    let queues = state.queues().map(|queue| {
        let (queued, held, held_until) = counts.get(queue.spec.name.as_str()).copied().unwrap_or_default();
        QueueView {
            spec: (*queue.spec).clone(),
            default: queue.spec.name == state.settings().default_queue,
            queued,
            held,
            held_until,
            running: u64::from(queue.running),
        }
    });
    let licences = state.licences().map(|(name, licence)| LicenceView {
        name: name.to_owned(),
        total: licence.total,
        used: licence.used,
    });
    QueuesPage {
        queues: queues.collect(),
        licences: licences.collect(),
        buffers: state.buffers().map(buffer_view).collect(),
        staging: (**state.staging_settings()).clone(),
        sequence: state.sequence(),
        time: state.time(),
    }
}

fn buffer_view((name, buffer): (&str, &Buffer)) -> BufferView {
    let Buffer { owner, job, created } = buffer.clone();
    BufferView { name: name.to_owned(), owner, job, created }
}

/// The state of a job, and how many jobs share it: for an array those tasks that have never started.
pub(crate) fn waiting_tasks(state: &State, job: &Job) -> (JobState, u64) {
    let tasks = job.array.as_ref().map_or(1, |array| array.remaining.len());
    match state.job_state(job) {
        // Tasks that run are jobs of their own.
        JobState::Running if job.array.is_some() => (JobState::Queued, tasks),
        other => (other, tasks),
    }
}

/// How many jobs are in each state.
pub(crate) fn job_counts(state: &State) -> BTreeMap<JobState, u64> {
    let mut counts = BTreeMap::new();
    for job in state.jobs() {
        // An array that is over has its tasks counted by how many there were, not by how many are left.
        let (job_state, tasks) = match (&job.array, &job.phase) {
            (Some(array), Phase::Finished(_)) => (JobState::Finished, array.finished_tasks()),
            (None, Phase::Finished(_)) if job.id.index.is_some() && is_counted_by_array(state, job) => continue,
            _ => waiting_tasks(state, job),
        };
        if let (Some(array), JobState::Held | JobState::Queued) = (&job.array, job_state) {
            *counts.entry(JobState::Finished).or_insert(0) += array.finished_tasks();
        }
        *counts.entry(job_state).or_insert(0) += tasks;
    }
    counts.retain(|_, count| *count > 0);
    counts
}

/// How many of the held jobs nothing else keeps than a time.
pub(crate) fn held_until(state: &State) -> u64 {
    let held = state.jobs().map(|job| (job, waiting_tasks(state, job)));
    held.filter(|(job, (word, _))| *word == JobState::Held && waits_for_time(state, job))
        .map(|(_, (_, tasks))| tasks)
        .sum()
}

/// Whether nothing else keeps a held job than a time.
fn waits_for_time(state: &State, job: &Job) -> bool {
    let is_time = |reason: WaitReason| matches!(reason, WaitReason::BeginTime(_) | WaitReason::HeldUntil { .. });
    job.holds().is_empty() && state.gate_reason(job).is_some_and(is_time)
}

fn is_counted_by_array(state: &State, task: &Job) -> bool {
    state.job(task.id.whole()).is_some()
}

/// All accounts, users, associations and service classes, with what counts for fair share at a moment; without one, at
/// that of the last record.
pub(crate) fn accounts_page(state: &State, now: Option<Timestamp>) -> AccountsPage {
    let accounts = state.accounts();
    let used = state.fair_use(now.unwrap_or(state.time())).into_iter();
    AccountsPage {
        settings: accounts.settings().clone(),
        accounts: accounts.accounts().cloned().collect(),
        users: accounts.users().cloned().collect(),
        associations: accounts.associations().cloned().collect(),
        classes: accounts.classes().cloned().collect(),
        used: used.map(|(of, core_seconds)| AssociationUse { of, core_seconds }).collect(),
        sequence: state.sequence(),
        time: state.time(),
    }
}

/// The runs of a job, by its records.
pub(crate) fn runs(records: &[Record], names: &dyn Names) -> Vec<RunView> {
    let mut runs = BTreeMap::new();
    for record in records {
        note_run(&mut runs, record, names);
    }
    runs.into_values().collect()
}

/// Takes in what a record says of a run; whether records of its kind do.
fn note_run(runs: &mut BTreeMap<RunId, RunView>, record: &Record, names: &dyn Names) -> bool {
    match &record.event {
        Event::RunAllocated { job, run, placement } => {
            let nodes = run_nodes(placement, names);
            let view = RunView {
                run: *run,
                job: *job,
                nodes,
                allocated: record.time,
                started: None,
                ended: None,
                outcome: None,
                usage: Default::default(),
                backfilled: false,
            };
            runs.insert(*run, view);
        }
        Event::RunBackfilled { run, .. } => {
            if let Some(view) = runs.get_mut(run) {
                view.backfilled = true;
            }
        }
        Event::RunStarted { run, .. } => {
            if let Some(view) = runs.get_mut(run) {
                view.started = Some(record.time);
            }
        }
        Event::RunGrown { run, added, .. } => {
            if let Some(view) = runs.get_mut(run) {
                run_nodes(added, names).into_iter().for_each(|more| add_node(&mut view.nodes, more));
            }
        }
        Event::RunShrunk { run, removed, .. }
        | Event::RunShrinking { run, removed, reason: ShrinkReason::Asked, .. } => {
            if let Some(view) = runs.get_mut(run) {
                run_nodes(removed, names).iter().for_each(|gone| remove_node(&mut view.nodes, gone));
            }
        }
        // It has them until its tasks there have ended.
        Event::RunShrinking { .. } => {}
        Event::RunPartEnded { run, node, component, exit, .. } => {
            if let Some(view) = runs.get_mut(run) {
                let part = NodePart { node: *node, component: *component, exit: exit.clone() };
                set_exit(view, &part, names);
            }
        }
        Event::RunEnded { run, last, outcome, usage, .. } => {
            if let Some(view) = runs.get_mut(run) {
                if let Some(part) = last {
                    set_exit(view, part, names);
                }
                end_run(view, record.time, outcome);
                view.usage = *usage;
            }
        }
        _ => return false,
    }
    true
}

fn end_run(view: &mut RunView, time: Timestamp, outcome: &Outcome) {
    view.ended = Some(time);
    view.outcome = Some(outcome.into());
}

fn set_exit(view: &mut RunView, part: &NodePart, names: &dyn Names) {
    let name = muster_schemas::public::node_name(names, part.node);
    let is_it = |node: &&mut RunNodeView| node.node == name && node.component == part.component;
    if let Some(node) = view.nodes.iter_mut().find(is_it) {
        node.exit = Some(part.exit.clone());
    }
}

/// A run has more from now on.
fn add_node(nodes: &mut Vec<RunNodeView>, more: RunNodeView) {
    match nodes.iter_mut().find(|held| held.node == more.node && held.component == more.component) {
        Some(held) => {
            held.cores = held.cores.union(&more.cores);
            held.gpus = held.gpus.union(&more.gpus);
            held.memory_bytes = held.memory_bytes.saturating_add(more.memory_bytes);
        }
        None => nodes.push(more),
    }
}

/// A run has less from now on.
fn remove_node(nodes: &mut Vec<RunNodeView>, gone: &RunNodeView) {
    let is_it = |held: &RunNodeView| held.node == gone.node && held.component == gone.component;
    for held in nodes.iter_mut().filter(|held| is_it(held) && held.exit.is_none()) {
        held.cores = held.cores.difference(&gone.cores);
        held.gpus = held.gpus.difference(&gone.gpus);
        held.memory_bytes = held.memory_bytes.saturating_sub(gone.memory_bytes);
    }
    // What ended there, and is given back since, is still what the run was.
    nodes.retain(|held| !is_it(held) || !held.cores.is_empty() || held.exit.is_some());
}

fn run_nodes(placement: &Placement, names: &dyn Names) -> Vec<RunNodeView> {
    let components = (0..).zip(&placement.components);
    let shares = components.flat_map(|(component, part)| part.shares.iter().map(move |share| (component, share)));
    let nodes = shares.map(|(component, share)| RunNodeView {
        node: muster_schemas::public::node_name(names, share.node).into_owned(),
        component,
        cores: share.cores.clone(),
        gpus: share.gpus.clone(),
        memory_bytes: share.memory_bytes,
        tasks: share.tasks,
        exclusive: share.exclusive,
        exit: None,
    });
    nodes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{event::Concern, testing::assert_handles};

    #[test]
    fn runs_are_told_from_what_the_table_of_events_says() {
        let (mut runs, state) = (BTreeMap::new(), State::default());
        assert_handles(Concern::Runs, |record| note_run(&mut runs, record, &state));
    }
}
