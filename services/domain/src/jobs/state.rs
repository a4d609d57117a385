//! The state of a job: everything that decides when and where it runs. Its launch stays in the log.

use crate::{
    components::SingleEnd,
    copies::JobCopies,
    dependencies::{Condition, ConditionStatus},
    filters::JobFilters,
    fixed::FixedTime,
    jobs::{ArrayState, Shape},
    staging::JobStaging,
    tasks::TaskBook,
};
use muster_schemas::{
    JobId, RunId, Sequence, Timestamp,
    copies::FileCopies,
    event::{Owner, TraceContext},
    job::{
        Checkpoint, ComponentStaging, DependencyKind, Holds, JobSpec, JobType, Notification, Outcome, Program,
        RequeuePolicy, Usage, WaitReason,
    },
    plan::SlotSpec,
    resources::{Alternative, Placement},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A job, an array, or a task of an array that has started at least once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Its owner.
    pub owner: Arc<Owner>,
    /// Its name, for people.
    pub name: Arc<str>,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// When it was last queued: the order of arrival.
    pub queued: Timestamp,
    /// The record of its submission, with everything that the state does not keep.
    pub submitted_sequence: Sequence,
    /// The trace of its submission.
    pub trace: TraceContext,
    /// How many runs it has had.
    pub attempts: u32,
    /// Its phase.
    pub phase: Phase,
    /// Its components, at least one.
    pub components: Box<[Component]>,
    /// The planner's last reason why it waits; see [`crate::State::wait_reason`].
    pub planner_reason: Option<Arc<WaitReason>>,
    /// Its last finished run.
    pub last_run: Option<Box<RunSummary>>,
    /// The tasks, if this is an array.
    pub array: Option<Box<ArrayState>>,
    /// Additions that most jobs do not have.
    pub extras: Option<Arc<JobExtras>>,
    /// Finished notifications: the event reported, and the index among the job's notifications.
    pub notified: Option<Box<BTreeSet<(Sequence, u32)>>>,
    /// The dialect in which it was submitted; `None` for muster's own.
    pub dialect: Option<Arc<str>>,
    /// Its promise, if the planner made one; for an array, that of its next task.
    pub slot: Option<Box<SlotSpec>>,
    /// Its predicted start, if foreseeable; for an array, that of its next task.
    pub predicted_start: Option<Timestamp>,
    /// How filters, a template or a timed hold affect it.
    pub filters: Option<Box<JobFilters>>,
    /// Its list of tasks, if it has one.
    pub tasks: Option<Box<TaskBook>>,
    /// Components of its last run that were ended alone, until it waits again.
    pub single_ends: Option<Box<BTreeMap<u32, SingleEnd>>>,
    /// The progress of its staging, if any.
    pub staging: Option<Box<JobStaging>>,
    /// The copying of its files, if it has some.
    pub copies: Option<Box<JobCopies>>,
}

/// The phase of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// It waits for gates or resources. An array waits until it has finished.
    Waiting,
    /// It has this run.
    Active(RunId),
    /// Its run has ended; the next record of the job says how it proceeds.
    Settling,
    /// It is over.
    Finished(Box<Finished>),
}

/// The end of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// When it ended.
    pub at: Timestamp,
    /// Its outcome.
    pub outcome: Outcome,
    /// It leaves the state with the first record after this time, unless waiting jobs depend on it.
    pub forget_after: Timestamp,
}

/// A run that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// Where it ran.
    pub placement: Arc<Placement>,
    /// When it got its resources.
    pub allocated: Timestamp,
    /// When its last node started; `None` if the run ended before that.
    pub started: Option<Timestamp>,
    /// When its last part ended.
    pub ended: Timestamp,
    /// Its outcome.
    pub outcome: Outcome,
    /// Its usage on all nodes.
    pub usage: Usage,
}

/// A part of a job with its own request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    /// Its queue.
    pub queue: Arc<str>,
    /// The account charged; `None` means the owner's own.
    pub account: Option<Arc<str>>,
    /// Higher comes first.
    pub priority: i64,
    /// Its request.
    #[serde(with = "super::shape::by_id")]
    pub shape: Arc<Shape>,
    /// Holds that keep the job from starting.
    pub holds: Holds,
    /// The kind of program that it launches.
    pub program: ProgramKind,
    /// Additions that most components do not have.
    pub extras: Option<Box<ComponentExtras>>,
}

/// The kind of program that a component launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramKind {
    /// Nothing; it holds resources.
    None,
    /// One script, on the lead node. Its end is the end of the run.
    Script,
    /// One process per task.
    Tasks,
}

impl From<&Program> for ProgramKind {
    fn from(program: &Program) -> Self {
        match program {
            Program::None => Self::None,
            Program::Script { .. } => Self::Script,
            Program::Tasks { .. } => Self::Tasks,
        }
    }
}

/// Additions that most components do not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentExtras {
    /// The service class (QOS).
    pub class: Option<Arc<str>>,
    /// The name of the reservation it runs in.
    pub reservation: Option<Arc<str>>,
    /// The earliest start.
    pub begin: Option<Timestamp>,
    /// Whether the begin time has passed.
    pub begin_passed: bool,
    /// It no longer starts once it could not end by this time.
    pub deadline: Option<Timestamp>,
    /// Seconds from SIGTERM to SIGKILL, if different from the cluster's settings.
    pub kill_grace_seconds: Option<u32>,
    /// Conditions for its start: one of each group must be met.
    pub dependencies: Vec<Vec<Condition>>,
    /// Conditions that later jobs have put before this one (`Before...`).
    pub before: Vec<Condition>,
    /// How many earlier jobs of the same owner and name must end first (`Singleton`). For a waiting job, 1 stands for
    /// any number, since only the first in line is checked when one ends; for a job that no longer waits it is the
    /// actual number.
    pub singletons_ahead: u32,
}

/// Additions that most jobs do not have. They never change, so an array shares them with its tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobExtras {
    /// The notifications and their receivers.
    pub notifications: Vec<Notification>,
    /// Asks the job to save its state.
    pub checkpoint: Option<Checkpoint>,
    /// Whether and when it may be run again.
    pub requeue: RequeuePolicy,
    /// Kinds of job with special rules.
    pub types: Vec<JobType>,
    /// The files and buffers to stage for its components.
    pub staging: Vec<ComponentStaging>,
    /// Whether it is cancelled once it can never start.
    pub cancelled_if_never_met: bool,
    /// Files that its node copies.
    pub copies: FileCopies,
    /// The kinds of job that quotas count it as.
    pub kinds: Vec<String>,
    /// Whether quotas do not hold it back.
    pub exceeds_quotas: bool,
}

impl JobExtras {
    /// The additions of a submission, if it has any.
    pub(crate) fn of(spec: &JobSpec) -> Option<Arc<Self>> {
        let plain = spec.notifications.is_empty()
            && spec.checkpoint.is_none()
            && spec.types.is_empty()
            && spec.staging.is_empty()
            && !spec.cancelled_if_never_met
            && spec.copies.is_empty()
            && spec.kinds.is_empty()
            && !spec.exceeds_quotas
            && spec.requeue == RequeuePolicy::default();
        (!plain).then(|| {
            Arc::new(Self {
                notifications: spec.notifications.clone(),
                checkpoint: spec.checkpoint,
                requeue: spec.requeue.clone(),
                types: spec.types.clone(),
                staging: spec.staging.clone(),
                cancelled_if_never_met: spec.cancelled_if_never_met,
                copies: spec.copies.clone(),
                kinds: spec.kinds.clone(),
                exceeds_quotas: spec.exceeds_quotas,
            })
        })
    }
}

static NO_NOTIFICATIONS: &[Notification] = &[];

impl Job {
    /// The job that a task becomes when it leaves this array.
    pub(crate) fn task(&self, index: u32) -> Self {
        Self {
            id: JobId::task(self.id.number, index),
            owner: self.owner.clone(),
            name: self.name.clone(),
            submitted: self.submitted,
            queued: self.queued,
            submitted_sequence: self.submitted_sequence,
            trace: self.trace,
            attempts: 0,
            phase: Phase::Waiting,
            components: self.components.clone(),
            planner_reason: None,
            last_run: None,
            array: None,
            extras: self.extras.clone(),
            notified: None,
            dialect: self.dialect.clone(),
            slot: None,
            predicted_start: None,
            filters: self.filters.as_ref().map(|filters| Box::new(filters.of_task())),
            tasks: None,
            single_ends: None,
            // An array is staged as a whole.
            staging: None,
            copies: self.copies.as_ref().map(|_| Box::default()),
        }
    }

    /// The component with the job's own number.
    pub fn lead(&self) -> &Component {
        // Submission gives every job at least one component.
        &self.components[0]
    }

    /// Its current run, if any.
    pub fn run(&self) -> Option<RunId> {
        match self.phase {
            Phase::Active(run) => Some(run),
            _ => None,
        }
    }

    /// Its end, if it is over.
    pub fn finished(&self) -> Option<&Finished> {
        match &self.phase {
            Phase::Finished(finished) => Some(finished),
            _ => None,
        }
    }

    /// Whether it is over.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Finished(_))
    }

    /// Whether it waits; for an array, whether some of its tasks have never started.
    pub fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting) && self.array.as_ref().is_none_or(|array| !array.remaining.is_empty())
    }

    /// The holds of all components.
    pub fn holds(&self) -> Holds {
        self.components.iter().fold(Holds::default(), |all, component| all.union(component.holds))
    }

    /// The notifications and their receivers.
    pub fn notifications(&self) -> &[Notification] {
        self.extras.as_ref().map_or(NO_NOTIFICATIONS, |extras| &extras.notifications)
    }

    /// Kinds of job with special rules.
    pub fn types(&self) -> &[JobType] {
        self.extras.as_ref().map_or(&[], |extras| &extras.types)
    }

    /// The kinds of job that quotas count it as.
    pub fn kinds(&self) -> &[String] {
        self.extras.as_ref().map_or(&[], |extras| &extras.kinds)
    }

    /// Whether quotas do not hold it back (OAR-Q-09).
    pub fn exceeds_quotas(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.exceeds_quotas)
    }

    /// Whether it is cancelled once it can never start.
    pub(crate) fn is_cancelled_if_never_met(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.cancelled_if_never_met)
    }

    /// The queues of its components, each once.
    pub fn queues(&self) -> impl Iterator<Item = &Arc<str>> {
        self.components.iter().enumerate().filter_map(|(at, component)| {
            let seen = self.components[..at].iter().any(|earlier| earlier.queue == component.queue);
            (!seen).then_some(&component.queue)
        })
    }

    /// The reservations that it names while it is not finished.
    pub(crate) fn reservations_wanted(&self) -> Vec<Arc<str>> {
        let is_counted = !self.is_finished();
        self.reservations().filter(|_| is_counted).cloned().collect()
    }

    /// The reservations that its components name.
    pub fn reservations(&self) -> impl Iterator<Item = &Arc<str>> {
        self.components.iter().filter_map(Component::reservation)
    }

    /// Clears the promise and the prediction of a job that no longer waits, or waits for something else. Returns
    /// whether it had a promise.
    pub(crate) fn forget_plans(&mut self) -> bool {
        self.predicted_start = None;
        self.slot.take().is_some()
    }

    /// Its time, if its start is fixed.
    pub fn fixed_time(&self) -> Option<FixedTime> {
        if !self.types().contains(&JobType::FixedStart) {
            return None;
        }
        let lead = self.components.first()?;
        let start = lead.extras.as_ref()?.begin?;
        let seconds = lead.shape.alternatives.first()?.walltime_seconds?;
        Some(FixedTime { start, end: start.plus_seconds(i64::try_from(seconds).unwrap_or(i64::MAX)) })
    }

    /// Sets the earliest start of all components; a fixed start stays.
    pub(crate) fn begin_at(&mut self, begin: Option<Timestamp>) {
        if self.fixed_time().is_some() {
            return;
        }
        for component in &mut self.components {
            let extras = component.extras.get_or_insert_default();
            extras.begin = begin;
            extras.begin_passed = false;
        }
    }

    /// Whether it starts only once no earlier job of the same owner and name is left.
    pub(crate) fn is_singleton(&self) -> bool {
        let mut extras = self.components.iter().filter_map(|component| component.extras.as_ref());
        extras.any(|extras| extras.waits_for_namesakes())
    }

    /// Records how many earlier jobs of the same owner and name are left, if it waits for them.
    pub(crate) fn count_singletons_ahead(&mut self, ahead: u32) {
        for extras in self.components.iter_mut().filter_map(|component| component.extras.as_mut()) {
            extras.singletons_ahead = if extras.singletons_ahead > 0 { ahead } else { 0 };
        }
    }

    /// Whether all gates of the job itself are open: holds, begin times, dependencies. A stopped queue is not the job's
    /// own gate, and single tasks of an array are held in [`ArrayState`].
    pub fn gates_open(&self) -> bool {
        self.is_staged_in() && !self.is_copied_ahead() && self.gates_but_staging_open()
    }

    /// Whether nothing but staging keeps it from starting.
    pub(crate) fn gates_but_staging_open(&self) -> bool {
        let filters_open = self.filters.as_ref().is_none_or(|filters| filters.is_open());
        filters_open && self.components.iter().all(Component::gates_open)
    }

    /// The earliest time at which the waiting job is due: a begin time, the end of a delay, a deadline.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        if !self.is_waiting() {
            return None;
        }
        let of_components = self.components.iter().filter_map(Component::due);
        of_components.chain(self.fixed_time().map(|time| time.end)).min()
    }

    /// Whether the planner found that it lacks resources, which jobs after it do not get either.
    pub(crate) fn blocks_others(&self) -> bool {
        matches!(
            self.planner_reason.as_deref(),
            Some(
                WaitReason::Resources(_)
                    | WaitReason::BehindJob(_)
                    | WaitReason::Reserved { .. }
                    | WaitReason::FewGroups { .. }
            )
        )
    }

    /// The job that makes a dependency impossible to meet, if any.
    pub fn never_met(&self) -> Option<JobId> {
        self.components.iter().find_map(|component| component.extras.as_ref()?.never_met())
    }
}

impl Component {
    /// Its service class, if any.
    pub fn class(&self) -> Option<&Arc<str>> {
        self.extras.as_ref()?.class.as_ref()
    }

    /// The reservation in which it runs, if it names one.
    pub fn reservation(&self) -> Option<&Arc<str>> {
        self.extras.as_ref()?.reservation.as_ref()
    }

    /// When it must be over.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.extras.as_ref()?.deadline
    }

    /// From when on it can no longer end by its deadline, even with the shortest of its alternatives.
    pub(crate) fn too_late_at(&self) -> Option<Timestamp> {
        let deadline = self.deadline()?;
        let walltime = |alternative: &Alternative| alternative.walltime_seconds.unwrap_or(0);
        let shortest = self.shape.alternatives.iter().map(walltime).min().filter(|seconds| *seconds > 0);
        // It can still start at that exact moment.
        Some(match shortest {
            Some(seconds) => Timestamp(deadline.plus_seconds(-i64::try_from(seconds).unwrap_or(i64::MAX)).0 + 1),
            None => deadline,
        })
    }

    fn due(&self) -> Option<Timestamp> {
        let of_gates = self.extras.as_ref().and_then(|extras| extras.due());
        of_gates.into_iter().chain(self.too_late_at()).min()
    }

    /// Whether its holds, begin time and dependencies let it start.
    pub fn gates_open(&self) -> bool {
        self.holds.is_empty() && self.extras.as_ref().is_none_or(|extras| extras.gates_open())
    }
}

impl ComponentExtras {
    pub(crate) fn begin_open(&self) -> bool {
        self.begin.is_none() || self.begin_passed
    }

    fn gates_open(&self) -> bool {
        self.begin_open() && self.dependencies_met()
    }

    /// All conditions: its dependencies, and those that later jobs put before this one.
    pub fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.dependencies.iter().flatten().chain(&self.before)
    }

    pub(crate) fn conditions_mut(&mut self) -> impl Iterator<Item = &mut Condition> {
        self.dependencies.iter_mut().flatten().chain(&mut self.before)
    }

    /// Whether `Before...` dependencies of other jobs are only counted, by a `Count` of its own.
    pub(crate) fn counts_before(&self) -> bool {
        self.dependencies
            .iter()
            .flatten()
            .any(|condition| matches!(condition.dependency.kind, DependencyKind::Count(_)))
    }

    /// Whether earlier jobs of the same owner and name must end first.
    pub(crate) fn waits_for_namesakes(&self) -> bool {
        let mut conditions = self.dependencies.iter().flatten();
        conditions.any(|condition| condition.dependency.kind == DependencyKind::Singleton)
    }

    pub(crate) fn dependencies_met(&self) -> bool {
        let groups_met = self.dependencies.iter().all(|group| group.iter().any(Condition::lets_go));
        groups_met && (self.counts_before() || self.before.iter().all(Condition::lets_go))
    }

    fn due(&self) -> Option<Timestamp> {
        let begin = self.begin.filter(|_| !self.begin_passed);
        let delays = self.conditions().filter_map(|condition| match condition.status {
            ConditionStatus::Delayed(until) => Some(until),
            _ => None,
        });
        begin.into_iter().chain(delays).min()
    }

    /// The job that makes the dependencies impossible to meet, if any.
    pub(crate) fn never_met(&self) -> Option<JobId> {
        let dead = |condition: &Condition| condition.status == ConditionStatus::Never;
        let group = self.dependencies.iter().find(|group| !group.is_empty() && group.iter().all(dead));
        let before = self.before.iter().filter(|_| !self.counts_before()).find(|condition| dead(condition));
        group.and_then(|group| group.first()).or(before).and_then(|condition| condition.dependency.job)
    }

    /// A condition for which it still waits.
    pub(crate) fn waits_for(&self) -> Option<&Condition> {
        let group = self.dependencies.iter().find(|group| !group.iter().any(Condition::lets_go));
        let before = self.before.iter().filter(|_| !self.counts_before()).find(|condition| !condition.lets_go());
        group.and_then(|group| group.iter().find(|condition| condition.status != ConditionStatus::Never)).or(before)
    }

    /// Updates the conditions that follow from others: `Count` from the `Before...` conditions of later jobs,
    /// `Singleton` from the number of namesakes ahead.
    pub(crate) fn settle(&mut self) {
        let before_met = self.before.iter().filter(|condition| condition.lets_go()).count();
        let none_ahead = self.singletons_ahead == 0;
        for condition in self.dependencies.iter_mut().flatten() {
            let met = match condition.dependency.kind {
                DependencyKind::Count(wanted) => before_met >= wanted as usize,
                DependencyKind::Singleton => none_ahead,
                _ => continue,
            };
            condition.status = if met { ConditionStatus::Met } else { ConditionStatus::Unmet };
        }
    }
}
