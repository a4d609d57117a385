//! Queries about jobs, arrays and their numbers.

use crate::{
    jobs::{Job, Phase, Shapes, numbers::TaskNumbers},
    runs::Run,
    state::{State, looks},
};
use muster_schemas::{JobId, event::OutputFiles, job::JobState, resources::IndexSet};
use std::{borrow::Cow, collections::BTreeSet, ops::Bound};

/// A job that only waits for resources.
#[derive(Clone, Debug)]
pub struct Waiting<'a> {
    /// The job, or the array whose tasks wait.
    pub job: &'a Job,
    /// For an array, the tasks that may start, at least one; without regard to its limit on running tasks
    /// ([`crate::jobs::ArrayState::headroom`]).
    pub indices: Option<Cow<'a, IndexSet>>,
}

impl State {
    /// The priority of a job, including that of its service class.
    pub fn priority_of(&self, job: &Job) -> i64 {
        let lead = job.lead();
        lead.priority.saturating_add(self.accounts.class_priority(lead))
    }

    /// All jobs that the state still knows, by id: jobs, arrays, and tasks that have started at least once.
    pub fn jobs(&self) -> impl ExactSizeIterator<Item = &Job> {
        self.jobs.values().inspect(|_| looks::note()).map(Box::as_ref)
    }

    /// The jobs with larger ids than this one, by id; without one, all jobs.
    pub fn jobs_after(&self, after: Option<JobId>) -> impl Iterator<Item = &Job> {
        self.jobs.range((after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)).map(|(_, job)| {
            looks::note();
            &**job
        })
    }

    /// The same for the jobs of one user, without visiting other jobs.
    pub fn jobs_of_after<'a>(&'a self, user: &str, after: Option<JobId>) -> impl Iterator<Item = &'a Job> + use<'a> {
        let behind = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let owned = self.index.owned.get(user).into_iter();
        owned.flat_map(move |ids| ids.range::<JobId, _>(behind)).filter_map(|id| self.job(*id))
    }

    /// The jobs of one user, by id, without visiting other jobs.
    pub fn jobs_of<'a>(&'a self, user: &str) -> impl Iterator<Item = &'a Job> + use<'a> {
        self.index.owned.get(user).into_iter().flatten().filter_map(|id| self.job(*id))
    }

    /// A job, an array, or a task that has started at least once.
    pub fn job(&self, id: JobId) -> Option<&Job> {
        looks::note();
        self.jobs.get(&id).map(Box::as_ref)
    }

    /// The job with the component of this number: components are numbered consecutively from the job's own number.
    pub fn job_of_component(&self, number: u64) -> Option<&Job> {
        let (_, before) = self.jobs.range(..=JobId::job(number)).next_back()?;
        let job = self.job(before.id.whole())?;
        (number - job.id.number < job.components.len() as u64).then_some(job)
    }

    /// An array together with its tasks that have started at least once, by index; a plain job alone.
    pub fn job_with_tasks(&self, number: u64) -> impl Iterator<Item = &Job> {
        let range = JobId::job(number)..=JobId::task(number, u32::MAX);
        self.jobs.range(range).map(|(_, job)| job.as_ref())
    }

    /// The number of unfinished jobs; an array counts as one.
    pub fn unfinished_jobs(&self) -> u64 {
        self.unfinished_jobs
    }

    /// The number of unfinished jobs; each task of an array counts as one.
    pub fn unfinished_tasks(&self) -> u64 {
        self.unfinished_jobs.saturating_add_signed(self.index.submitted.further_tasks())
    }

    /// The shapes in use.
    pub fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// The jobs that only wait for resources, in order of arrival (time queued, then number): their gates are open, the
    /// queues of all their components are started, and the reservations that they name have begun. Each array is one
    /// entry.
    pub fn waiting(&self) -> impl Iterator<Item = Waiting<'_>> {
        // Usually every queue is started, and no job has to be checked for its own.
        let all_started = !self.settings.is_idle && self.queues().all(|queue| queue.spec.starts_jobs());
        self.index.queued.iter().filter_map(move |(_, id)| {
            let job = self.job(*id).filter(|job| all_started || self.queues_started(job))?;
            if self.reservation_reason(job).is_some() {
                return None;
            }
            let indices = job.array.as_ref().map(|array| self.startable(job, array));
            let startable = indices.as_ref().is_none_or(|indices| !indices.is_empty());
            startable.then_some(Waiting { job, indices })
        })
    }

    /// Whether the planner and the queues of all components of a job are started.
    pub(crate) fn queues_started(&self, job: &Job) -> bool {
        !self.settings.is_idle
            && job.queues().all(|name| self.queue(name).is_some_and(|queue| queue.spec.starts_jobs()))
    }

    /// The number of waiting jobs with open gates; an array counts as one. Includes jobs of stopped queues and of
    /// reservations that have not begun.
    pub fn eligible_jobs(&self) -> usize {
        self.index.queued.len()
    }

    /// The waiting jobs that depend on this one, by id.
    pub fn dependents(&self, id: JobId) -> impl Iterator<Item = JobId> {
        self.index.dependents.get(&id).into_iter().flatten().copied()
    }

    /// The waiting jobs that depend on others, by id.
    pub fn jobs_after_others(&self) -> impl Iterator<Item = &Job> {
        let all: BTreeSet<JobId> = self.index.dependents.values().flatten().copied().collect();
        all.into_iter().filter_map(|id| self.job(id)).filter(|job| job.is_waiting())
    }

    /// The state of a job. An array with a running task is running; otherwise it has the state of its waiting tasks.
    pub fn job_state(&self, job: &Job) -> JobState {
        match &job.phase {
            Phase::Finished(_) => JobState::Finished,
            Phase::Settling => JobState::Finishing,
            Phase::Active(_) if job.tasks.as_ref().is_some_and(|tasks| tasks.ending.is_some()) => JobState::Finishing,
            Phase::Active(run) => self.run(*run).map_or(JobState::Finishing, run_state),
            Phase::Waiting if job.array.as_ref().is_some_and(|array| array.running > 0) => JobState::Running,
            Phase::Waiting if self.gate_reason(job).is_some() => JobState::Held,
            Phase::Waiting => JobState::Queued,
        }
    }

    /// The attributes of a job that differ from the submission; empty ones were removed.
    pub fn altered_attributes(&self, job: JobId) -> impl Iterator<Item = (&str, &str)> {
        let attributes = self.altered.attributes.get(&job.whole()).into_iter().flatten();
        attributes.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The files for the output of a job, if they differ from the submission.
    pub fn altered_output(&self, job: JobId) -> Option<&OutputFiles> {
        self.altered.outputs.get(&job.whole())
    }

    /// The number of the next job.
    pub fn next_job_number(&self) -> u64 {
        self.next_job.max(1)
    }

    /// The lowest number for jobs submitted since this was set (SL-I-04).
    pub fn first_job_number(&self) -> u64 {
        self.numbers.first.max(1)
    }

    /// Tasks of arrays from this number on have their own numbers; `None` if no tasks have.
    pub fn task_numbers_from(&self) -> Option<u64> {
        self.numbers.tasks_from
    }

    /// The number of a job, an array or a task; a task without its own number has that of the array (SL-C-18).
    pub fn number_of(&self, id: JobId) -> u64 {
        let position = |index| self.numbers.arrays.get(&id.number)?.position(index);
        id.number + id.index.and_then(position).unwrap_or(0)
    }

    /// The tasks of an array that have their own numbers: all or none.
    pub fn numbered_tasks(&self, array: u64) -> Option<&IndexSet> {
        self.numbers.arrays.get(&array).map(TaskNumbers::indices)
    }

    /// Resolves an id: a task's own number means the task, except that the first task's number is that of the array.
    pub fn id_meant(&self, id: JobId) -> JobId {
        if id.index.is_some() || self.jobs.contains_key(&id) {
            return id;
        }
        let Some((array, tasks)) = self.numbers.arrays.range(..=id.number).next_back() else { return id };
        tasks.index(id.number - array).filter(|_| *array < id.number).map_or(id, |index| JobId::task(*array, index))
    }

    /// The job or task with a number; the number of a component means its job.
    pub fn job_of_number(&self, number: u64) -> Option<JobId> {
        let id = self.id_meant(JobId::job(number));
        match id.index {
            Some(_) => Some(id),
            None => self.job_of_component(number).map(|job| job.id),
        }
    }
}

fn run_state(run: &Run) -> JobState {
    match run {
        Run { stopping: Some(_), .. } => JobState::Finishing,
        Run { started: None, .. } => JobState::Launching,
        run if run.is_suspended() => JobState::Suspended,
        _ => JobState::Running,
    }
}
