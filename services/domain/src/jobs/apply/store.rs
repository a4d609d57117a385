//! Adding, changing and removing jobs, with the index.

use crate::{
    accounts::load::Submitted,
    index::JobKeys,
    jobs::{ComponentExtras, Job, Phase},
    state::State,
};
use muster_schemas::{JobId, Timestamp};

impl State {
    /// Changes a job, if it exists, and updates the index.
    pub(crate) fn change_job(&mut self, id: JobId, change: impl FnOnce(&mut Job)) {
        if let Some(job) = self.jobs.get_mut(&id) {
            let before = JobKeys::of(job);
            let load_before = Submitted::load(&self.accounts, job);
            let name = job.name.clone();
            let reserved_before = job.reservations_wanted();
            change(job);
            let reserved = job.reservations_wanted();
            let after = JobKeys::of(job);
            if before.is_singleton && !after.is_singleton {
                job.count_singletons_ahead(self.index.namesakes_ahead(&job.owner.user, &name, id.whole()));
            }
            let is_staging_changed = before.to_stage != after.to_stage;
            let is_namesake_changed = before.namesake != after.namesake;
            let namesakes = is_namesake_changed.then(|| [before.namesake.clone(), after.namesake.clone()]);
            self.index.move_job(id, before, after);
            let load_after = Submitted::load(&self.accounts, job);
            if load_before != load_after {
                load_before.iter().for_each(|load| self.index.submitted.subtract(&self.accounts, load));
                load_after.iter().for_each(|load| self.index.submitted.add(&self.accounts, load));
            }
            if is_staging_changed {
                self.refresh_staging(id);
            }
            if reserved_before != reserved {
                self.reservations_named(id, &reserved_before, &reserved);
            }
            for (owner, name) in namesakes.into_iter().flatten().flatten() {
                self.refresh_namesakes(&owner.user, &name);
            }
        }
    }

    /// Adds a job.
    pub(crate) fn add_job(&mut self, job: Job) {
        self.index.add_job(&job);
        if let Some(load) = Submitted::load(&self.accounts, &job) {
            self.index.submitted.add(&self.accounts, &load);
        }
        let id = job.id;
        let is_staged = job.staging.is_some();
        let reserved = job.reservations_wanted();
        self.jobs.insert(id, Box::new(job));
        self.reservations_named(id, &[], &reserved);
        if is_staged {
            self.refresh_staging(id);
        }
    }

    /// Removes a job.
    fn remove_job(&mut self, id: JobId) {
        let Some(job) = self.jobs.remove(&id) else { return };
        self.forget_comment(id);
        self.index.remove_job(&job);
        self.reservations_named(id, &job.reservations_wanted(), &[]);
        if let Some(load) = Submitted::load(&self.accounts, &job) {
            self.index.submitted.subtract(&self.accounts, &load);
        }
        if id.index.is_none() {
            self.altered.attributes.remove(&id);
            self.altered.outputs.remove(&id);
        }
        for component in &job.components {
            self.shapes.give_back(&component.shape);
        }
        self.forget_numbers(id.number);
    }

    /// Removes finished jobs that are old enough. If waiting jobs depend on one, or its filters have not all undone
    /// their work, or its results are being copied, it stays for another period.
    pub(crate) fn forget_finished(&mut self) {
        let now = self.time;
        while let Some((time, id)) = self.index.retention.first().copied()
            && time < now
        {
            let is_needed = |job: &Job| is_rolled_back(job) || self.has_results_on_their_way(job);
            if self.index.dependents.contains_key(&id) || self.job(id).is_some_and(is_needed) {
                let again = retention_from(self, now);
                self.change_job(id, |job| {
                    if let Phase::Finished(finished) = &mut job.phase {
                        finished.forget_after = again;
                    }
                });
            } else {
                self.remove_job(id);
            }
        }
    }

    /// A task of an array becomes a separate job, because the gates of the array have opened for it.
    pub(crate) fn materialise(&mut self, id: JobId) {
        self.separate(id, |extras| {
            extras.dependencies.clear();
            extras.before.clear();
            extras.begin = None;
        });
    }

    /// A task of an array becomes a separate job if it is none, because it alone changes. It waits for what the array
    /// waits for; an array with dependencies stays whole.
    pub(crate) fn set_apart(&mut self, id: JobId) {
        if id.index.is_none() || self.jobs.contains_key(&id) {
            return;
        }
        let whole = self.jobs.get(&id.whole()).and_then(|whole| whole.array.as_ref());
        let held = id.index.and_then(|index| whole?.held.get(&index).copied()).unwrap_or_default();
        self.separate(id, |_| {});
        self.change_job(id, |task| {
            task.components.iter_mut().for_each(|component| component.holds = component.holds.union(held));
        });
    }

    fn separate(&mut self, id: JobId, open: impl Fn(&mut ComponentExtras)) {
        let Some(index) = id.index else { return };
        let Some(whole) = self.jobs.get(&id.whole()).filter(|whole| whole.array.is_some()) else { return };
        let mut components = whole.components.clone();
        for component in &mut components {
            self.shapes.take_again(&component.shape);
            component.extras.iter_mut().for_each(|extras| open(extras));
        }
        let mut task = Job { components, ..whole.task(index) };
        if self.index.singletons.contains(&id.whole()) {
            let ahead = self.index.namesakes_ahead(&task.owner.user, &task.name, id.whole());
            task.count_singletons_ahead(ahead);
        }
        self.add_job(task);
        self.change_job(id.whole(), |whole| {
            // The plans were for this task.
            whole.forget_plans();
            if let Some(array) = &mut whole.array {
                array.remaining.remove(index);
                array.held.remove(&index);
                array.unfinished += 1;
            }
        });
    }
}

/// Whether filters have still to undo their work for the job.
fn is_rolled_back(job: &Job) -> bool {
    job.filters.as_ref().is_some_and(|filters| filters.chain.is_some())
}

/// Until when a job that finishes now stays in the state. At least a second, so that a loop over what is due ends.
pub(crate) fn retention_from(state: &State, now: Timestamp) -> Timestamp {
    let seconds = i64::try_from(state.settings().finished_job_retention_seconds).unwrap_or(i64::MAX);
    now.plus_seconds(seconds.max(1))
}
