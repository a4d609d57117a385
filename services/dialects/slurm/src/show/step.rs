//! A step of a job, as `squeue -s`, `sacct` and `scontrol show step` list it.

use super::{
    Clock,
    record::{JobRecord, Person},
};
use crate::{
    job_id::StepName,
    options::values::Distribution,
    words::{ExitCode, State},
};
use muster_schemas::{job::Usage, time::Timestamp};

/// A step, or the part of one in a component.
#[derive(Clone, Debug)]
pub struct StepRecord {
    /// The step.
    pub step: StepName,
    /// The id of its job or component in lists: `93+1`, `43_2`.
    pub shown_job: String,
    /// The number of its job or component.
    pub job: u64,
    /// Its name.
    pub name: String,
    /// The owner's login name.
    pub user: String,
    /// The numbers of its owner.
    pub person: Person,
    /// The partition of its job.
    pub partition: String,
    /// The account of its job.
    pub account: Option<String>,
    /// Its state.
    pub state: State,
    /// When it started.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// The longest time that it may run.
    pub limit_seconds: Option<u64>,
    /// Its nodes.
    pub nodes: Vec<String>,
    /// How many processors it has.
    pub cpus: u64,
    /// How many GPUs it has.
    pub gpus: u64,
    /// How many tasks it has.
    pub tasks: u32,
    /// How its tasks were distributed over the nodes.
    pub distribution: Distribution,
    /// How it ended.
    pub exit: ExitCode,
    /// What it used on all nodes where it has ended.
    pub usage: Usage,
}

impl StepRecord {
    /// A step on all nodes of a job, with values from the job's record.
    pub fn of_job(job: &JobRecord, step: StepName, name: &str) -> Self {
        Self {
            step,
            shown_job: job.shown_id().to_string(),
            job: job.number,
            name: name.to_owned(),
            user: job.user.clone(),
            person: job.person.clone(),
            partition: job.partition.clone(),
            account: job.account.clone(),
            state: job.state,
            started: job.started,
            ended: job.ended,
            limit_seconds: None,
            nodes: job.nodes.clone(),
            cpus: job.cpus,
            gpus: job.gpus,
            tasks: job.tasks,
            distribution: Distribution::Block,
            exit: job.exit,
            usage: Usage::default(),
        }
    }

    /// How long it has lasted.
    pub fn used_seconds(&self, clock: &Clock) -> u64 {
        let Some(started) = self.started else { return 0 };
        u64::try_from(self.ended.unwrap_or(clock.now).micros_since(started) / 1_000_000).unwrap_or(0)
    }

    /// Its id in lists: `93+1.0`, `7.batch`.
    pub fn shown_id(&self) -> String {
        format!("{}.{}", self.shown_job, self.step)
    }
}

/// The rank of a step within its job: the batch script and similar steps come before numbered ones.
pub(super) fn place(step: StepName) -> (u8, u32) {
    match step {
        StepName::Batch => (0, 0),
        StepName::Extern => (1, 0),
        StepName::Interactive => (2, 0),
        StepName::Number(number) => (3, number),
    }
}
