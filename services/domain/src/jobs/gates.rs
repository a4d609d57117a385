//! Reasons that keep a waiting job from being planned: holds, begin times, dependencies, stopped queues,
//! reservations.

use crate::state::{
    ArrayState, Chain, Condition, ConditionStatus, Entry, Filtering, Job, Phase, Stage, State, job::ComponentExtras,
};
use muster_schemas::{
    JobId, Timestamp,
    filter::{ChainVerdict, FilterKind},
    job::{Dependencies, Dependency, DependencyKind, Holds, WaitReason},
    resources::IndexSet,
};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The facts that dependencies can be about.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    started: Option<Timestamp>,
    ended: Option<(Timestamp, bool)>,
    running: Option<Timestamp>,
    is_array: bool,
}

impl State {
    /// The limit on running jobs that a waiting job has come up against.
    pub fn limit_reason(&self, job: &Job) -> Option<WaitReason> {
        job.queues().filter_map(|name| self.queue(name)).find_map(|queue| {
            let (name, user) = (&queue.spec.name, &job.owner.user);
            if let Some(most) = queue.spec.max_running_jobs.filter(|most| queue.running >= *most) {
                return Some(WaitReason::Limit(format!("{most} running jobs in queue {name}")));
            }
            let most = queue.spec.max_running_jobs_per_user.filter(|most| queue.running_of(user) >= *most)?;
            Some(WaitReason::Limit(format!("{most} running jobs of {user} in queue {name}")))
        })
    }

    /// The first gate of a waiting job that is shut. `None` if all are open.
    pub fn gate_reason(&self, job: &Job) -> Option<WaitReason> {
        let filtering = job.filtering.as_deref().and_then(|filtering| filtering_reason(job, filtering));
        let reason = filtering.or_else(|| staging_failed(job)).or_else(|| self.own_gate_reason(job));
        reason.or_else(|| self.array_reason(job)).or_else(|| self.staging_reason(job))
    }

    /// What is still to be staged in for a job that nothing else keeps from starting (SL-B-08).
    fn staging_reason(&self, job: &Job) -> Option<WaitReason> {
        if job.is_staged_in() {
            return None;
        }
        if let Some(name) = job.missing_buffer(&self.staging.buffers) {
            return Some(WaitReason::BufferMissing(name.to_owned()));
        }
        Some(WaitReason::StagingIn(job.staged_components().first().map_or(0, |staged| staged.component)))
    }

    /// Why filters keep a job with open gates from starting: its own said so, or that of a job of higher or equal priority
    /// (HPC-J-26).
    pub(crate) fn filters_reason(&self, job: &Job) -> Option<WaitReason> {
        let refusal = job.filtering.as_ref().and_then(|filtering| filtering.refusal.as_ref());
        let not_now = refusal.filter(|refusal| matches!(refusal.verdict, ChainVerdict::Block | ChainVerdict::Reserve));
        let own = not_now.map(|refusal| WaitReason::ActivationFilter(refusal.filter.to_string()));
        own.or_else(|| self.blocked_by(job).map(WaitReason::BlockedByJob))
    }

    /// The job whose activation filter keeps this one from starting, whatever is free (HPC-F-31).
    pub fn blocked_by(&self, job: &Job) -> Option<JobId> {
        let (blocker, priority) = self.queue_block()?;
        (blocker != job.id && job.lead().priority <= priority).then_some(blocker)
    }

    /// The first gate of a waiting job that is shut, but for those of its filters and its array.
    pub(crate) fn own_gate_reason(&self, job: &Job) -> Option<WaitReason> {
        let holds = job.holds();
        if !holds.is_empty() {
            return Some(WaitReason::Held(holds));
        }
        if let Some(on) = job.never_met() {
            return Some(WaitReason::DependencyNeverMet(on));
        }
        for extras in job.components.iter().filter_map(|component| component.extras.as_deref()) {
            if let Some(reason) = extras_reason(extras) {
                return Some(reason);
            }
        }
        if !self.queues_started(job) {
            return Some(WaitReason::QueueStopped);
        }
        self.reservation_reason(job)
    }

    /// Why a job cannot run in the reservations that it names, if it is so.
    pub(crate) fn reservation_reason(&self, job: &Job) -> Option<WaitReason> {
        job.reservations().find_map(|name| match self.reservation(name) {
            None => Some(WaitReason::ReservationGone(name.to_string())),
            Some(reservation) if !reservation.begun => Some(WaitReason::ReservationNotBegun(name.to_string())),
            Some(_) => None,
        })
    }

    fn array_reason(&self, job: &Job) -> Option<WaitReason> {
        let whole = match job.id.index {
            Some(_) => self.job(job.id.whole())?,
            None => job,
        };
        let array = whole.array.as_ref()?;
        if array.headroom() == 0 {
            return Some(WaitReason::ArrayLimit);
        }
        if job.id.index.is_some() || !self.startable(job, array).is_empty() {
            return None;
        }
        Some(match same_index_targets(job).next() {
            Some(target) if array.remaining == array.impossible => WaitReason::DependencyNeverMet(target),
            Some(target) => WaitReason::Dependency(target),
            None => WaitReason::Held(held_tasks(array)),
        })
    }

    /// The tasks of an array that may start as far as they are concerned singly: never started, not held, and the
    /// tasks of the same index that they depend on have ended well.
    pub fn startable<'a>(&self, job: &'a Job, array: &'a ArrayState) -> Cow<'a, IndexSet> {
        let mut startable = Cow::Borrowed(&array.remaining);
        if !array.held.is_empty() {
            let held: IndexSet = array.held.keys().copied().collect();
            startable = Cow::Owned(startable.difference(&held));
        }
        for target in same_index_targets(job) {
            if let Some(other) = self.job(target).and_then(|other| other.array.as_ref()) {
                let ready = other.succeeded().map(|succeeded| startable.intersection(succeeded));
                startable = Cow::Owned(ready.unwrap_or_default());
            }
        }
        startable
    }

    /// The tasks of an array that can never start, because the task of the same index of a job that they depend on so
    /// did not end well.
    pub(crate) fn impossible_tasks(&self, job: &Job) -> IndexSet {
        let Some(array) = &job.array else { return IndexSet::new() };
        let mut impossible = IndexSet::new();
        for other in same_index_targets(job).filter_map(|target| self.job(target)) {
            let Some(other_array) = other.array.as_ref().filter(|_| other.is_finished()) else { continue };
            let ready = other_array.succeeded().cloned().unwrap_or_default();
            impossible = impossible.union(&array.remaining.difference(&ready));
        }
        impossible
    }

    /// The waiting jobs that can never start, or tasks of which cannot, and that will be cancelled for that
    /// (SL-C-19).
    pub(crate) fn impossible_jobs(&self) -> &BTreeSet<JobId> {
        if self.settings().cancel_never_met { &self.index.doomed } else { &self.index.given_up }
    }

    /// The facts about a job, array or task. `None` if the state does not know it (any more).
    pub(crate) fn facts(&self, id: JobId) -> Option<Facts> {
        let Some(job) = self.job(id) else { return self.facts_of_unstarted_task(id) };
        if let Phase::Finished(finished) = &job.phase {
            return Some(Facts {
                started: Some(finished.at),
                ended: Some((finished.at, finished.outcome.is_success())),
                running: None,
                is_array: job.array.is_some(),
            });
        }
        let run = job.run().and_then(|run| self.run(run));
        let started = run.and_then(|run| run.started);
        let running = started.filter(|_| run.is_some_and(|run| run.stopping.is_none()));
        match &job.array {
            None => Some(Facts { started, ended: None, running, is_array: false }),
            Some(array) => Some(Facts {
                started: array.remaining.is_empty().then_some(self.time()),
                ended: None,
                running: (array.running > 0).then_some(self.time()),
                is_array: true,
            }),
        }
    }

    fn facts_of_unstarted_task(&self, id: JobId) -> Option<Facts> {
        let array = self.job(id.whole())?.array.as_ref()?;
        let index = id.index?;
        if array.remaining.contains(index) {
            return Some(Facts::default());
        }
        let outcome = array.task_outcome(index)?;
        let at = self.time();
        Some(Facts { started: Some(at), ended: Some((at, outcome.is_success())), running: None, is_array: false })
    }

    /// The state of conditions when they are first looked at.
    pub(crate) fn conditions(&self, dependencies: &Dependencies, now: Timestamp) -> Vec<Vec<Condition>> {
        let condition = |dependency: &Dependency| self.condition(dependency.clone(), now);
        dependencies.all_of.iter().map(|group| group.iter().map(condition).collect()).collect()
    }

    pub(crate) fn condition(&self, dependency: Dependency, now: Timestamp) -> Condition {
        let mut condition = Condition { dependency, status: ConditionStatus::Unmet };
        if let Some(facts) = condition.dependency.job.and_then(|target| self.facts(target)) {
            update(&mut condition, facts, now);
        }
        condition
    }
}

/// What an administrator has to see to before it is tried again.
fn staging_failed(job: &Job) -> Option<WaitReason> {
    match &job.staging.as_ref()?.stage {
        Stage::Failed(why) if job.holds().system => Some(WaitReason::StagingFailed(why.clone())),
        _ => None,
    }
}

/// Why a job is not in the queue yet, or what of its filters or its hold keeps it from being planned.
fn filtering_reason(job: &Job, filtering: &Filtering) -> Option<WaitReason> {
    if filtering.entry == Entry::Configuring {
        return Some(WaitReason::Configuring);
    }
    let chain = filtering.chain.as_deref();
    if let Some(chain) = chain.filter(|chain| chain.spec.kind == FilterKind::StageIn) {
        let position = chain.call.as_ref().map_or(0, |call| call.id.position);
        let staged = job.staged_components().get(position as usize).copied();
        return Some(WaitReason::StagingIn(staged.map_or(0, |staged| staged.component)));
    }
    let hold = || filtering.hold.map(|(until, by)| WaitReason::HeldUntil { until, by });
    match chain.and_then(|chain| chain.failure) {
        // What the verdict means shows at once, while the filters ahead take back what they did (HPC-F-55).
        Some(ChainVerdict::Block | ChainVerdict::Reserve) => {
            let refusal = filtering.refusal.as_ref()?;
            hold().or_else(|| Some(WaitReason::ActivationFilter(refusal.filter.to_string())))
        }
        Some(_) => hold().or_else(|| Some(WaitReason::FilterPending("its rollback filters".into()))),
        None if filtering.entry == Entry::Entered && chain.is_none() => hold(),
        None => Some(WaitReason::FilterPending(pending(chain))),
    }
}

/// Whose answer is outstanding, for people.
fn pending(chain: Option<&Chain>) -> String {
    let Some(chain) = chain else { return "its filters".into() };
    let position = chain.call.as_ref().map_or(0, |call| call.id.position);
    match chain.spec.filters.get(position as usize) {
        Some(filter) => format!("{} filter '{}'", chain.spec.kind.word(), filter.spec.name),
        None => "the check of its description".into(),
    }
}

fn extras_reason(extras: &ComponentExtras) -> Option<WaitReason> {
    if let Some(condition) = extras.waits_for() {
        return Some(match (&condition.status, condition.dependency.kind, condition.dependency.job) {
            (ConditionStatus::Delayed(until), ..) => WaitReason::BeginTime(*until),
            (_, DependencyKind::Singleton, _) => WaitReason::Namesake,
            (_, _, Some(other)) => WaitReason::Dependency(other),
            (_, _, None) => WaitReason::Announced,
        });
    }
    extras.begin.filter(|_| !extras.begin_passed).map(WaitReason::BeginTime)
}

fn held_tasks(array: &ArrayState) -> Holds {
    array.held.values().fold(Holds::default(), |all, holds| all.union(*holds))
}

/// The jobs that an array depends on task by task.
fn same_index_targets(job: &Job) -> impl Iterator<Item = JobId> {
    let extras = job.components.iter().filter_map(|component| component.extras.as_deref());
    extras.flat_map(|extras| extras.dependencies.iter()).filter_map(|group| {
        // A group with an alternative that is met does not look at tasks singly.
        let met = group.iter().any(|condition| condition.status == ConditionStatus::Met && !is_same_index(condition));
        group.iter().filter(|_| !met).find(|condition| is_same_index(condition))?.dependency.job
    })
}

fn is_same_index(condition: &Condition) -> bool {
    condition.dependency.kind == DependencyKind::SameIndexSucceeded
}

/// Brings a condition up to date with the facts about its job. A fact that has happened stays so, also if the job is
/// queued again; that it can never happen is taken back then.
pub(crate) fn update(condition: &mut Condition, facts: Facts, now: Timestamp) {
    let sticky = condition.dependency.kind != DependencyKind::Running;
    if sticky && matches!(condition.status, ConditionStatus::Met | ConditionStatus::Delayed(_)) {
        return;
    }
    let delay = i64::from(condition.dependency.delay_seconds);
    condition.status = match happened(condition.dependency.kind, facts) {
        Happened::Yes(at) if at.plus_seconds(delay) <= now => ConditionStatus::Met,
        Happened::Yes(_) if delay == 0 => ConditionStatus::Met,
        Happened::Yes(at) => ConditionStatus::Delayed(at.plus_seconds(delay)),
        Happened::NotYet => ConditionStatus::Unmet,
        Happened::Never => ConditionStatus::Never,
    };
}

enum Happened {
    Yes(Timestamp),
    NotYet,
    Never,
}

fn happened(kind: DependencyKind, facts: Facts) -> Happened {
    let ended_so = |wanted: bool| match facts.ended {
        None => Happened::NotYet,
        Some((at, success)) if success == wanted => Happened::Yes(at),
        Some(_) => Happened::Never,
    };
    match kind {
        DependencyKind::Started => facts.started.map_or(Happened::NotYet, Happened::Yes),
        DependencyKind::Ended => facts.ended.map_or(Happened::NotYet, |(at, _)| Happened::Yes(at)),
        // Of an array each task is looked at by itself; see `startable`.
        DependencyKind::SameIndexSucceeded if facts.is_array => Happened::NotYet,
        DependencyKind::Succeeded | DependencyKind::SameIndexSucceeded => ended_so(true),
        DependencyKind::Failed => ended_so(false),
        DependencyKind::Running => match (facts.running, facts.ended) {
            (Some(at), _) => Happened::Yes(at),
            (None, Some(_)) => Happened::Never,
            (None, None) => Happened::NotYet,
        },
        DependencyKind::Singleton
        | DependencyKind::Count(_)
        | DependencyKind::BeforeStarted
        | DependencyKind::BeforeEnded
        | DependencyKind::BeforeSucceeded
        | DependencyKind::BeforeFailed => Happened::NotYet,
    }
}

/// Opens what opens by time.
pub(crate) fn pass_time(extras: &mut ComponentExtras, now: Timestamp) {
    if extras.begin.is_some_and(|begin| begin <= now) {
        extras.begin_passed = true;
    }
    for condition in extras.conditions_mut() {
        if matches!(condition.status, ConditionStatus::Delayed(until) if until <= now) {
            condition.status = ConditionStatus::Met;
        }
    }
    extras.settle();
}
