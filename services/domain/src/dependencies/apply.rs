//! The effect of a change of one job on the jobs that depend on it.

use crate::{
    dependencies::{Condition, facts},
    jobs::{Job, Phase},
    state::State,
};
use muster_schemas::{
    JobId, Timestamp,
    job::{Dependency, DependencyKind},
    resources::IndexSet,
};

impl State {
    /// Updates the dependencies of the waiting jobs that depend on this one.
    pub(crate) fn refresh_dependents(&mut self, target: JobId, now: Timestamp) {
        if self.index.dependents.is_empty() {
            return;
        }
        self.refresh_dependents_of(target, now);
        if target.index.is_some() {
            self.refresh_dependents_of(target.whole(), now);
        }
    }

    pub(crate) fn refresh_dependents_of_tasks(&mut self, number: u64, indices: &IndexSet, now: Timestamp) {
        let tasks = JobId::task(number, 0)..=JobId::task(number, u32::MAX);
        let depended_on = self.index.dependents.range(tasks).map(|(target, _)| *target);
        let over: Vec<JobId> = depended_on.filter(|id| id.index.is_some_and(|index| indices.contains(index))).collect();
        for target in over {
            self.refresh_dependents_of(target, now);
        }
    }

    fn refresh_dependents_of(&mut self, target: JobId, now: Timestamp) {
        let Some(waiters) = self.index.dependents.get(&target) else { return };
        let waiters: Vec<JobId> = waiters.iter().copied().collect();
        let Some(facts) = self.facts(target) else { return };
        for waiter in waiters {
            self.change_job(waiter, |job| {
                for component in &mut job.components {
                    let Some(extras) = &mut component.extras else { continue };
                    for condition in extras.conditions_mut() {
                        if condition.dependency.job == Some(target) {
                            facts::update(condition, facts, now);
                        }
                    }
                    extras.settle();
                }
            });
            self.refresh_impossible_tasks(waiter);
        }
    }

    fn refresh_impossible_tasks(&mut self, waiter: JobId) {
        let Some(job) = self.job(waiter) else { return };
        let impossible = self.impossible_tasks(job);
        if job.array.as_ref().is_some_and(|array| array.impossible != impossible) {
            self.change_job(waiter, |job| {
                if let Some(array) = &mut job.array {
                    array.impossible = impossible;
                }
            });
        }
    }

    /// Updates the dependencies of a job that waits again with what happened in the meantime.
    pub(crate) fn look_at_dependencies_again(&mut self, id: JobId, now: Timestamp) {
        let Some(mut job) = self.jobs.get(&id).map(|job| (**job).clone()) else { return };
        for extras in job.components.iter_mut().filter_map(|component| component.extras.as_mut()) {
            for condition in extras.conditions_mut() {
                if let Some(facts) = condition.dependency.job.and_then(|target| self.facts(target)) {
                    facts::update(condition, facts, now);
                }
            }
        }
        self.settle_dependencies(&mut job);
        self.change_job(id, |waiting| *waiting = job);
    }

    /// Updates those dependencies of a job that do not follow from one other job.
    pub(crate) fn settle_dependencies(&mut self, job: &mut Job) {
        if job.components.iter().all(|component| component.extras.is_none()) {
            return;
        }
        let ahead = if job.is_singleton() { self.namesakes_ahead(job) } else { 0 };
        for extras in job.components.iter_mut().filter_map(|component| component.extras.as_mut()) {
            extras.singletons_ahead = ahead;
            extras.settle();
        }
        let impossible = self.impossible_tasks(job);
        if let Some(array) = &mut job.array {
            array.impossible = impossible;
        }
    }

    /// Puts a job before those that it names in `Before...` dependencies: each of them gets the reverse condition.
    pub(crate) fn put_before_others(&mut self, id: JobId, now: Timestamp) {
        let Some(job) = self.jobs.get(&id) else { return };
        let extras = job.components.iter().filter_map(|component| component.extras.as_ref());
        let turned: Vec<(JobId, Dependency)> = extras
            .flat_map(|extras| extras.dependencies.iter().flatten())
            .filter_map(|condition| turn_round(&condition.dependency, id))
            .collect();
        for (other, dependency) in turned {
            let condition = self.condition(dependency, now);
            self.change_job(other, |job| add_before(job, condition));
        }
    }

    /// The number of older unfinished jobs with the same owner and name; for a waiting job, 1 if there are any.
    fn namesakes_ahead(&self, job: &Job) -> u32 {
        let (user, name) = (job.owner.user.as_str(), &*job.name);
        match job.is_waiting() {
            true => u32::from(self.index.namesakes(user, name).next().is_some_and(|first| first < job.id.whole())),
            false => self.index.namesakes_ahead(user, name, job.id.whole()),
        }
    }

    /// Jobs of an owner and name came or went: the first one left waits for none of them, the next one does, and
    /// nothing changes for the rest.
    pub(crate) fn refresh_namesakes(&mut self, user: &str, name: &str) {
        if self.index.singletons.is_empty() {
            return;
        }
        let head = self.index.namesakes(user, name).take(2).filter(|id| self.index.singletons.contains(id));
        let tasks = self.index.singleton_tasks.iter().filter_map(|id| self.job(*id));
        let tasks = tasks.filter(|task| task.owner.user == user && *task.name == *name).map(|task| task.id);
        for waiter in head.chain(tasks).collect::<Vec<_>>() {
            let Some(ahead) = self.job(waiter).map(|job| self.namesakes_ahead(job)) else { continue };
            self.change_job(waiter, |job| {
                for extras in job.components.iter_mut().filter_map(|component| component.extras.as_mut()) {
                    extras.singletons_ahead = ahead;
                    extras.settle();
                }
            });
        }
    }
}

/// The condition that a `Before...` dependency of `of` means for the job it names.
fn turn_round(dependency: &Dependency, of: JobId) -> Option<(JobId, Dependency)> {
    let kind = match dependency.kind {
        DependencyKind::BeforeStarted => DependencyKind::Started,
        DependencyKind::BeforeEnded => DependencyKind::Ended,
        DependencyKind::BeforeSucceeded => DependencyKind::Succeeded,
        DependencyKind::BeforeFailed => DependencyKind::Failed,
        _ => return None,
    };
    Some((dependency.job?, Dependency { kind, job: Some(of), delay_seconds: dependency.delay_seconds }))
}

fn add_before(job: &mut Job, condition: Condition) {
    let Some(lead) = job.components.first_mut() else { return };
    let extras = lead.extras.get_or_insert_default();
    let known = |other: &Condition| other.dependency == condition.dependency;
    if job.phase == Phase::Waiting && !extras.before.iter().any(known) {
        extras.before.push(condition);
        extras.settle();
    }
}
