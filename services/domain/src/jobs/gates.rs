//! Reasons that keep a waiting job from being planned: holds, begin times, dependencies, stopped queues,
//! reservations.

use crate::{
    dependencies::{ConditionStatus, facts::same_index_targets},
    filters::{Chain, Entry, JobFilters},
    jobs::{ArrayState, ComponentExtras, Job},
    staging::Stage,
    state::State,
};
use muster_schemas::{
    JobId, Timestamp,
    filter::{ChainVerdict, FilterKind},
    job::{DependencyKind, Holds, WaitReason},
    resources::IndexSet,
};
use std::borrow::Cow;

impl State {
    /// The limit on running jobs that a waiting job has reached.
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

    /// The first closed gate of a waiting job; `None` if all are open.
    pub fn gate_reason(&self, job: &Job) -> Option<WaitReason> {
        let filters = job.filters.as_deref().and_then(|filters| own_filters_reason(job, filters));
        let reason = filters.or_else(|| staging_failed(job)).or_else(|| self.own_gate_reason(job));
        reason.or_else(|| self.array_reason(job)).or_else(|| self.staging_reason(job))
    }

    /// The staging that a job still waits for, if nothing else keeps it from starting (SL-B-08).
    fn staging_reason(&self, job: &Job) -> Option<WaitReason> {
        if job.is_copied_ahead() {
            return Some(WaitReason::StagingIn(0));
        }
        if job.is_staged_in() {
            return None;
        }
        if let Some(name) = job.missing_buffer(&self.staging.buffers) {
            return Some(WaitReason::BufferMissing(name.to_owned()));
        }
        Some(WaitReason::StagingIn(job.staged_components().first().map_or(0, |staged| staged.component)))
    }

    /// Why filters keep a job with open gates from starting: its own filters, or those of a job of higher or equal
    /// priority (HPC-J-26).
    pub(crate) fn filters_reason(&self, job: &Job) -> Option<WaitReason> {
        let refusal = job.filters.as_ref().and_then(|filters| filters.refusal.as_ref());
        let not_now = refusal.filter(|refusal| matches!(refusal.verdict, ChainVerdict::Block | ChainVerdict::Reserve));
        let own = not_now.map(|refusal| WaitReason::ActivationFilter(refusal.filter.to_string()));
        own.or_else(|| self.blocked_by(job).map(WaitReason::BlockedByJob))
    }

    /// The job whose activation filter keeps this one from starting, whatever is free (HPC-F-31).
    pub fn blocked_by(&self, job: &Job) -> Option<JobId> {
        let (blocker, priority) = self.queue_block()?;
        (blocker != job.id && job.lead().priority <= priority).then_some(blocker)
    }

    /// The first closed gate of a waiting job, except those of its filters and its array.
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
        if self.settings.is_idle {
            return Some(WaitReason::PlannerOff);
        }
        if job.queues().any(|name| self.queue(name).is_some_and(|queue| queue.spec.route.is_some())) {
            return Some(WaitReason::NotPassedOn);
        }
        if !self.queues_started(job) {
            return Some(WaitReason::QueueStopped);
        }
        self.reservation_reason(job)
    }

    /// The first closed gate of a waiting job for a planner whose starts stopped queues do not keep back (PBS-C-09).
    pub fn gate_reason_of_ordered(&self, job: &Job) -> Option<WaitReason> {
        match self.gate_reason(job) {
            Some(WaitReason::QueueStopped) => self.reason_behind_queues(job),
            reason => reason,
        }
    }

    /// The first closed gate of a waiting job that comes after those of its queues.
    pub(crate) fn reason_behind_queues(&self, job: &Job) -> Option<WaitReason> {
        let own = self.reservation_reason(job).or_else(|| self.array_reason(job));
        own.or_else(|| self.staging_reason(job))
    }

    /// Why a job cannot run in the reservations that it names, if it cannot.
    pub(crate) fn reservation_reason(&self, job: &Job) -> Option<WaitReason> {
        job.reservations().find_map(|name| match self.reservation(name) {
            None => Some(WaitReason::ReservationGone(name.to_string())),
            Some(reservation) if reservation.begun || reservation.spec.is_flexible => None,
            Some(_) => Some(WaitReason::ReservationNotBegun(name.to_string())),
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

    /// The tasks of an array that may start by themselves: never started, not held, and the tasks of the same index
    /// that they depend on have succeeded.
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
}

/// What an administrator must fix before staging is tried again.
fn staging_failed(job: &Job) -> Option<WaitReason> {
    match &job.staging.as_ref()?.stage {
        Stage::Failed(why) if job.holds().system => Some(WaitReason::StagingFailed(why.clone())),
        _ => None,
    }
}

/// Why a job is not in the queue yet, or how its filters or its hold prevent planning.
fn own_filters_reason(job: &Job, filters: &JobFilters) -> Option<WaitReason> {
    if filters.entry == Entry::Configuring {
        return Some(WaitReason::Configuring);
    }
    let chain = filters.chain.as_deref();
    if let Some(chain) = chain.filter(|chain| chain.spec.kind == FilterKind::StageIn) {
        let position = chain.call.as_ref().map_or(0, |call| call.id.position);
        let staged = job.staged_components().get(position as usize).copied();
        return Some(WaitReason::StagingIn(staged.map_or(0, |staged| staged.component)));
    }
    let hold = || filters.hold.map(|(until, by)| WaitReason::HeldUntil { until, by });
    match chain.and_then(|chain| chain.failure) {
        // The meaning of the verdict shows at once, while earlier filters undo their work (HPC-F-55).
        Some(ChainVerdict::Block | ChainVerdict::Reserve) => {
            let refusal = filters.refusal.as_ref()?;
            hold().or_else(|| Some(WaitReason::ActivationFilter(refusal.filter.to_string())))
        }
        Some(_) => hold().or_else(|| Some(WaitReason::FilterPending("its rollback filters".into()))),
        None if filters.entry == Entry::Entered && chain.is_none() => hold(),
        None => Some(WaitReason::FilterPending(pending(chain))),
    }
}

/// The filters whose answer is outstanding, for people.
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

/// Opens gates that open with time.
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
