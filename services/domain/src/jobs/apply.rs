//! Jobs from submission to the end, except their runs.

mod numbers;
mod store;

use crate::{
    copies::CopyStage,
    jobs::{
        ArrayState, Component, ComponentExtras, Finished, Job, JobExtras, Phase, ProgramKind,
        apply::store::retention_from, gates,
    },
    staging::JobStaging,
    state::State,
};
use muster_schemas::{
    JobId, Sequence, Timestamp,
    event::{JobChange, Owner, Record, StopReason, WaitingJob},
    job::{self, Holds, JobSpec, JobType, Outcome, Sink},
    resources::{Alternative, IndexSet},
};
use std::sync::Arc;

impl State {
    pub(crate) fn job_submitted(&mut self, id: JobId, owner: &Arc<Owner>, spec: &JobSpec, record: &Record) {
        let now = self.time;
        self.take_numbers(id, spec);
        let owner = self.pools.owners.share(owner.clone());
        let components = if spec.components.is_empty() {
            Box::new([self.component(&job::Component::default(), now)]) as Box<[Component]>
        } else {
            spec.components.iter().map(|component| self.component(component, now)).collect()
        };
        let mut job = Job {
            id,
            owner,
            name: self.pools.text.share(spec.name.as_str()),
            submitted: now,
            queued: now,
            submitted_sequence: record.sequence,
            trace: record.trace,
            attempts: 0,
            phase: Phase::Waiting,
            components,
            planner_reason: None,
            last_run: None,
            array: spec.array.as_ref().map(|array| {
                Box::new(ArrayState {
                    tasks: array.indices.len(),
                    remaining: array.indices.clone(),
                    max_running: array.max_running,
                    ..ArrayState::default()
                })
            }),
            extras: JobExtras::of(spec),
            notified: None,
            dialect: spec.dialect.as_deref().map(|dialect| self.pools.text.share(dialect)),
            slot: None,
            predicted_start: None,
            filters: None,
            tasks: None,
            single_ends: None,
            staging: None,
            copies: JobExtras::of(spec).and_then(|extras| extras.new_copies()),
        };
        if spec.types.contains(&JobType::FixedStart) {
            // It is planned at once.
            let extras = job.components.iter_mut().filter_map(|component| component.extras.as_deref_mut());
            extras.for_each(|extras| extras.begin_passed = true);
        }
        job.staging = self.new_staging(&job);
        self.count_job(&job, true);
        self.unfinished_jobs += 1;
        self.settle_dependencies(&mut job);
        self.add_job(job);
        self.put_before_others(id, now);
    }

    pub(crate) fn component(&mut self, spec: &job::Component, now: Timestamp) -> Component {
        let queue = spec.queue.as_deref().unwrap_or(&self.settings.default_queue);
        Component {
            queue: self.pools.text.share(queue),
            account: spec.account.as_deref().map(|account| self.pools.text.share(account)),
            priority: spec.priority.unwrap_or(0),
            shape: self.shapes.take(&spec.alternatives),
            holds: spec.holds,
            program: ProgramKind::from(&spec.launch.program),
            extras: self.component_extras(spec, now),
        }
    }

    fn component_extras(&mut self, spec: &job::Component, now: Timestamp) -> Option<Box<ComponentExtras>> {
        let plain = spec.class.is_none()
            && spec.reservation.is_none()
            && spec.begin.is_none()
            && spec.deadline.is_none()
            && spec.launch.kill_grace_seconds.is_none()
            && spec.dependencies.all_of.is_empty();
        if plain {
            return None;
        }
        Some(Box::new(ComponentExtras {
            class: spec.class.as_deref().map(|class| self.pools.text.share(class)),
            reservation: spec.reservation.as_deref().map(|reservation| self.pools.text.share(reservation)),
            begin: spec.begin,
            begin_passed: spec.begin.is_some_and(|begin| begin <= now),
            deadline: spec.deadline,
            kill_grace_seconds: spec.launch.kill_grace_seconds,
            dependencies: self.conditions(&spec.dependencies, now),
            before: Vec::new(),
            singletons_ahead: 0,
        }))
    }

    /// Adds a job to the counts of its queues, or removes it.
    pub(crate) fn count_job(&mut self, job: &Job, more: bool) {
        if job.id.index.is_some() {
            return;
        }
        for name in job.queues() {
            if let Some(queue) = self.queues.get_mut(name) {
                queue.jobs = if more { queue.jobs + 1 } else { queue.jobs.saturating_sub(1) };
            }
        }
    }

    pub(crate) fn holds_changed(&mut self, id: JobId, change: impl Fn(Holds) -> Holds) {
        if self.jobs.contains_key(&id) {
            self.change_job(id, |job| {
                for component in &mut job.components {
                    component.holds = change(component.holds);
                }
                job.planner_reason = None;
            });
            if self.job(id).is_some_and(|job| !job.holds().is_empty()) {
                self.void_plans(id);
            }
            return;
        }
        let Some(index) = id.index else { return };
        self.change_job(id.whole(), |job| {
            let Some(array) = &mut job.array else { return };
            let holds = change(array.held.remove(&index).unwrap_or_default());
            if !holds.is_empty() && array.remaining.contains(index) {
                array.held.insert(index, holds);
            }
        });
    }

    pub(crate) fn job_modified(&mut self, id: JobId, change: &JobChange, now: Timestamp) {
        self.set_apart(id);
        self.walltime_asked_for(id, change);
        let Some(mut job) = self.jobs.get(&id).map(|job| (**job).clone()) else { return };
        // Removed and added again, since a change can affect every count.
        self.count_job(&job, false);
        if let Some(name) = &change.name {
            job.name = self.pools.text.share(name.as_str());
        }
        if let (Some(limit), Some(array)) = (change.max_running, &mut job.array) {
            array.max_running = Some(limit);
        }
        if let Some(again) = change.requeue_on_node_lost {
            Arc::make_mut(job.extras.get_or_insert_default()).requeue.on_node_lost = again;
        }
        if let Some(mails) = &change.mails {
            let notifications = &mut Arc::make_mut(job.extras.get_or_insert_default()).notifications;
            notifications.retain(|one| !matches!(one.sink, Sink::Mail(_)));
            notifications.extend_from_slice(mails);
        }
        job.planner_reason = None;
        if let Some(copies) = job.copies.as_mut().filter(|_| change.alternatives.is_some()) {
            // The new request names no node because of files.
            copies.is_bound = false;
        }
        for (number, component) in job.components.iter_mut().enumerate() {
            if change.component.is_none_or(|only| only as usize == number) {
                self.modify_component(component, change, now);
            }
        }
        if let (Some(begin), true) = (change.begin, job.types().contains(&JobType::FixedStart)) {
            // A fixed start that has passed is still one.
            for component in &mut job.components {
                let extras = component.extras.get_or_insert_default();
                extras.begin = Some(begin);
                extras.begin_passed = begin <= now;
            }
        }
        if change.queue.is_some() && job.is_waiting() {
            job.queued = now;
        }
        if let (Some(alternatives), Some(tasks)) = (&change.alternatives, &mut job.tasks) {
            tasks.resize(alternatives);
        }
        self.settle_dependencies(&mut job);
        self.count_job(&job, true);
        let waits = job.is_waiting();
        if let (Some(run), true) = (job.run(), change.walltime_seconds.is_some()) {
            self.change_run(run, |run| run.walltime_changed = true);
            self.note_freed();
        }
        self.change_job(id, |kept| *kept = job);
        if !change.attributes.is_empty() {
            let kept = self.altered.attributes.entry(id.whole()).or_default();
            kept.extend(change.attributes.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        if let Some(output) = &change.output {
            self.altered.outputs.insert(id.whole(), output.clone());
        }
        if changes_need(change) {
            self.void_plans(id);
        }
        if waits && change.dependencies.is_some() {
            self.put_before_others(id, now);
        }
    }

    fn modify_component(&mut self, component: &mut Component, change: &JobChange, now: Timestamp) {
        if let Some(queue) = &change.queue {
            component.queue = self.pools.text.share(queue.as_str());
        }
        if let Some(account) = &change.account {
            component.account = Some(self.pools.text.share(account.as_str()));
        }
        if let Some(priority) = change.priority {
            component.priority = priority;
        }
        if let Some(begin) = change.begin {
            let extras = component.extras.get_or_insert_default();
            extras.begin = (begin > now).then_some(begin);
            extras.begin_passed = false;
        }
        if let Some(dependencies) = &change.dependencies {
            let conditions = self.conditions(dependencies, now);
            component.extras.get_or_insert_default().dependencies = conditions;
        }
        if let Some(reservation) = &change.reservation {
            let name = Some(reservation.as_str()).filter(|name| !name.is_empty());
            component.extras.get_or_insert_default().reservation = name.map(|name| self.pools.text.share(name));
        }
        if let Some(deadline) = change.deadline {
            component.extras.get_or_insert_default().deadline = Some(deadline);
        }
        let alternatives = change
            .alternatives
            .clone()
            .or_else(|| change.walltime_seconds.is_some().then(|| component.shape.alternatives.to_vec()));
        if let Some(mut alternatives) = alternatives {
            if let Some(walltime) = change.walltime_seconds {
                alternatives.iter_mut().for_each(|alternative| alternative.walltime_seconds = Some(walltime));
            }
            self.reshape(component, &alternatives);
        }
    }

    /// Changes what all components of a job ask for.
    pub(crate) fn reshape_all(&mut self, id: JobId, change: impl Fn(&[Alternative]) -> Vec<Alternative>) {
        let Some(job) = self.jobs.get(&id) else { return };
        let mut components = job.components.clone();
        for component in &mut components {
            let alternatives = change(&component.shape.alternatives);
            self.reshape(component, &alternatives);
        }
        self.change_job(id, |job| {
            job.components = components;
            job.planner_reason = None;
        });
    }

    fn reshape(&mut self, component: &mut Component, alternatives: &[Alternative]) {
        let shape = self.shapes.take(alternatives);
        self.shapes.give_back(&component.shape);
        component.shape = shape;
    }

    pub(crate) fn job_eligible(&mut self, id: JobId, now: Timestamp) {
        self.copies_wanted_again(id);
        self.change_job(id, |job| {
            for component in &mut job.components {
                if let Some(extras) = &mut component.extras {
                    gates::pass_time(extras, now);
                }
            }
        });
    }

    pub(crate) fn jobs_waiting(&mut self, reasons: &[WaitingJob]) {
        for WaitingJob { job, reason } in reasons {
            let reason = self.pools.reasons.share(Arc::new(reason.clone()));
            self.note_comment(*job, &reason, self.time);
            self.change_job(*job, |job| job.planner_reason = Some(reason));
        }
    }

    pub(crate) fn job_requeued(&mut self, id: JobId, reason: StopReason, now: Timestamp) {
        let Some(job) = self.jobs.get(&id) else { return };
        let queued = self.queued_again(job, reason, now);
        let was_over = job.is_finished();
        let begin = (reason == StopReason::Repeated).then(|| self.repeats_at(job, now)).flatten();
        if was_over {
            self.revive(id);
        }
        self.change_job(id, |job| {
            job.phase = Phase::Waiting;
            if let Some(staging) = job.staging.as_mut().filter(|_| was_over) {
                **staging = JobStaging::default();
            }
            if let Some(copies) = job.copies.as_mut().filter(|_| was_over) {
                copies.stage = CopyStage::Wanted;
            }
            job.queued = queued;
            job.planner_reason = None;
            // The next run has all components again (SL-M-10).
            job.single_ends = None;
            if begin.is_some() {
                job.begin_at(begin);
            }
            if let Some(tasks) = job.tasks.as_mut().filter(|_| reason == StopReason::Requeued) {
                tasks.begin_again();
            }
            if let Some(filters) = &mut job.filters {
                filters.is_backfill = false;
                filters.ends_after_verdict = None;
            }
        });
        self.look_at_dependencies_again(id, now);
        self.refresh_dependents(id, now);
    }

    /// The arrival time of a job that is queued again: last in order, except that a job that had to make way, has a
    /// template or is a list of tasks comes first (HPC-J-05, HPC-S-13).
    fn queued_again(&self, job: &Job, reason: StopReason, now: Timestamp) -> Timestamp {
        let has_template = job.filters.as_ref().is_some_and(|filters| filters.template.is_some());
        if reason != StopReason::Preempted && !has_template && job.tasks.is_none() {
            return now;
        }
        let first = self.index.queued.first().map(|(first, _)| first.plus_micros(-1));
        first.map_or(job.queued, |first| first.min(job.queued))
    }

    /// A finished job becomes unfinished again.
    fn revive(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id).map(|job| (**job).clone()) else { return };
        match id.index {
            None => self.job_is_unfinished_again(&job),
            Some(index) => {
                let whole_was_over = self.job(id.whole()).is_some_and(Job::is_finished);
                self.change_job(id.whole(), |whole| {
                    whole.phase = Phase::Waiting;
                    if let Some(array) = &mut whole.array {
                        array.unfinished += 1;
                        array.take_back(index);
                    }
                });
                if whole_was_over && let Some(whole) = self.job(id.whole()).cloned() {
                    self.job_is_unfinished_again(&whole);
                }
            }
        }
    }

    fn job_is_unfinished_again(&mut self, job: &Job) {
        self.count_job(job, true);
        self.unfinished_jobs += 1;
    }

    pub(crate) fn job_finished(&mut self, id: JobId, outcome: &Outcome, now: Timestamp) {
        let forget_after = retention_from(self, now);
        let Some(job) = self.jobs.get(&id) else { return };
        if job.is_finished() {
            return;
        }
        self.clients.kept.remove(&id);
        self.copies_dropped(id);
        if id.index.is_none() {
            self.unfinished_jobs = self.unfinished_jobs.saturating_sub(1);
            self.uncount(id);
        }
        self.change_job(id, |job| {
            job.phase = Phase::Finished(Box::new(Finished { at: now, outcome: outcome.clone(), forget_after }));
            job.planner_reason = None;
            if let Some(array) = &mut job.array {
                array.held.clear();
            }
            if let Some(filters) = &mut job.filters {
                filters.end(outcome);
            }
        });
        self.void_plans(id);
        if let Some(index) = id.index {
            self.change_job(id.whole(), |whole| {
                if let Some(array) = &mut whole.array {
                    array.unfinished = array.unfinished.saturating_sub(1);
                    array.record_outcome(&IndexSet::from_range(index, index), outcome);
                }
            });
        }
        self.refresh_dependents(id, now);
    }

    fn uncount(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        for name in job.queues() {
            if let Some(queue) = self.queues.get_mut(name) {
                queue.jobs = queue.jobs.saturating_sub(1);
            }
        }
    }

    pub(crate) fn tasks_finished(&mut self, id: JobId, indices: &IndexSet, outcome: &Outcome, now: Timestamp) {
        self.change_job(id, |job| {
            let Some(array) = &mut job.array else { return };
            array.remaining = array.remaining.difference(indices);
            array.impossible = array.impossible.difference(indices);
            array.held.retain(|index, _| !indices.contains(*index));
            array.record_outcome(indices, outcome);
            if array.remaining.is_empty()
                && let Some(filters) = &mut job.filters
            {
                // There is no task left that a hold could keep from starting.
                filters.hold = None;
            }
        });
        if self.job(id).is_some_and(|job| !job.is_waiting()) {
            self.void_plans(id);
        }
        self.refresh_dependents(id, now);
        self.refresh_dependents_of_tasks(id.number, indices, now);
    }

    pub(crate) fn notified(&mut self, id: JobId, of: Sequence, notification: u32) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.notified.get_or_insert_default().insert((of, notification));
        }
    }
}

/// Whether a change affects what a job asks for or when it may start, so that plans made for it are void.
fn changes_need(change: &JobChange) -> bool {
    change.queue.is_some()
        || change.begin.is_some()
        || change.walltime_seconds.is_some()
        || change.alternatives.is_some()
        || change.dependencies.is_some()
        || change.reservation.is_some()
        || change.deadline.is_some()
}
