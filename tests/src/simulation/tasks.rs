//! Rules for lists of tasks in the log: no instance of a task runs twice at the same time, and one that has succeeded
//! is not run again, whatever happens to the job's runs.

use muster_schemas::{
    JobId, RunId, StepId,
    event::Event,
    tasks::{TaskInstance, TaskKind, TaskList},
};
use std::collections::{BTreeMap, BTreeSet};

/// A running instance.
type Running = (JobId, TaskInstance);

/// The tasks of a log.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// The kinds of the tasks of each list.
    lists: BTreeMap<JobId, Vec<TaskKind>>,
    running: BTreeMap<(RunId, StepId), Running>,
    done: BTreeSet<Running>,
    /// The number of instances that have ended.
    pub(super) ended: u64,
    /// The number of times that a run gained or lost resources.
    pub(super) resizes: u64,
}

impl Tasks {
    /// Takes an event.
    pub(super) fn see(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::JobSubmitted { job, intake: Some(intake), .. } => self.listed(*job, intake.tasks.as_ref()),
            Event::JobValidated { job, validated } => self.listed(*job, validated.tasks.as_ref()),
            Event::TaskStarted { job, run, step, instance, .. } => self.started(*job, *run, *step, *instance)?,
            Event::StepEnded { run, step, status, .. } => {
                if let Some(instance) = self.running.remove(&(*run, *step)) {
                    self.ended += 1;
                    if status.is_some_and(|status| status.is_success()) && self.runs_once(&instance) {
                        self.done.insert(instance);
                    }
                }
            }
            Event::RunEnded { run, .. } => self.running.retain(|(of, _), _| of != run),
            Event::RunGrown { .. } | Event::RunShrunk { .. } => self.resizes += 1,
            _ => {}
        }
        Ok(())
    }

    fn listed(&mut self, job: JobId, list: Option<&TaskList>) {
        if let Some(list) = list {
            self.lists.insert(job, list.tasks.iter().map(|task| task.kind).collect());
        }
    }

    /// Whether an instance only has to succeed once; services and the tasks of nodes are run again and again.
    fn runs_once(&self, (job, instance): &Running) -> bool {
        let kind = self.lists.get(job).and_then(|kinds| kinds.get(instance.task as usize));
        matches!(kind, Some(TaskKind::Basic | TaskKind::Sweep { .. }))
    }

    fn started(&mut self, job: JobId, run: RunId, step: StepId, instance: TaskInstance) -> Result<(), String> {
        let started = (job, instance);
        let called = || format!("instance {} of task {} of job {job}", instance.instance, instance.task);
        if self.done.contains(&started) {
            return Err(format!("{} has ended well, and is started again", called()));
        }
        if self.runs_once(&started) && self.running.values().any(|running| *running == started) {
            return Err(format!("{} runs, and is started beside it", called()));
        }
        self.running.insert((run, step), started);
        Ok(())
    }
}
