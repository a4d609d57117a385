//! The facts that dependencies refer to, and how they settle conditions.

use crate::{
    dependencies::{Condition, ConditionStatus},
    jobs::{Job, Phase},
    state::State,
};
use muster_schemas::{
    JobId, Timestamp,
    job::{Dependencies, Dependency, DependencyKind, Outcome},
    resources::IndexSet,
};
use std::collections::BTreeSet;

/// The facts that dependencies can refer to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    started: Option<Timestamp>,
    ended: Option<(Timestamp, Ending)>,
    running: Option<Timestamp>,
    is_array: bool,
}

/// How a job has ended, as far as it matters to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// It succeeded.
    Succeeded,
    /// Its program failed.
    Failed,
    /// Something else ended it, or it never ran.
    Broken,
}

impl Ending {
    const fn of(outcome: &Outcome) -> Self {
        match outcome {
            outcome if outcome.is_success() => Self::Succeeded,
            Outcome::Failed(_) => Self::Failed,
            _ => Self::Broken,
        }
    }
}

impl State {
    /// The tasks of an array that can never start, because the task of the same index that they depend on did not
    /// succeed.
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

    /// The waiting jobs that will be cancelled because they, or some of their tasks, can never start (SL-C-19).
    pub(crate) fn impossible_jobs(&self) -> &BTreeSet<JobId> {
        if self.settings().cancel_never_met { &self.index.doomed } else { &self.index.given_up }
    }

    /// The facts about a job, array or task; `None` if the state does not know it, or no longer does.
    pub(crate) fn facts(&self, id: JobId) -> Option<Facts> {
        let Some(job) = self.job(id) else { return self.facts_of_unstarted_task(id) };
        if let Phase::Finished(finished) = &job.phase {
            return Some(Facts {
                started: Some(finished.at),
                ended: Some((finished.at, Ending::of(&finished.outcome))),
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
        Some(Facts { started: Some(at), ended: Some((at, Ending::of(outcome))), running: None, is_array: false })
    }

    /// The state of new conditions.
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

/// The jobs that an array depends on task by task.
pub(crate) fn same_index_targets(job: &Job) -> impl Iterator<Item = JobId> {
    let extras = job.components.iter().filter_map(|component| component.extras.as_deref());
    extras.flat_map(|extras| extras.dependencies.iter()).filter_map(|group| {
        // If an alternative of a group is met, its tasks are not checked one by one.
        let met = group.iter().any(|condition| condition.status == ConditionStatus::Met && !is_same_index(condition));
        group.iter().filter(|_| !met).find(|condition| is_same_index(condition))?.dependency.job
    })
}

fn is_same_index(condition: &Condition) -> bool {
    condition.dependency.kind == DependencyKind::SameIndexSucceeded
}

/// Updates a condition with the facts about its job. What has happened stays so even if the job is queued again;
/// "never" is then withdrawn.
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
    let ended_so = |is_wanted: fn(Ending) -> bool| match facts.ended {
        None => Happened::NotYet,
        Some((at, ending)) if is_wanted(ending) => Happened::Yes(at),
        Some(_) => Happened::Never,
    };
    let succeeded = |ending| ending == Ending::Succeeded;
    match kind {
        DependencyKind::Started => facts.started.map_or(Happened::NotYet, Happened::Yes),
        DependencyKind::Ended => facts.ended.map_or(Happened::NotYet, |(at, _)| Happened::Yes(at)),
        // The tasks of an array are checked one by one; see `startable`.
        DependencyKind::SameIndexSucceeded if facts.is_array => Happened::NotYet,
        DependencyKind::Succeeded | DependencyKind::SameIndexSucceeded => ended_so(succeeded),
        DependencyKind::Failed => ended_so(|ending| ending != Ending::Succeeded),
        DependencyKind::NotFailed => ended_so(|ending| ending != Ending::Failed),
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
