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
use muster_schemas::time::Timestamp;

/// A step, or the part of one in a component.
#[derive(Clone, Debug)]
pub struct StepRecord {
    /// Which step.
    pub step: StepName,
    /// The id of its job or component as lists show it: `93+1`, `43_2`.
    pub shown_job: String,
    /// The number of its job or component.
    pub job: u64,
    /// What it is called.
    pub name: String,
    /// Login name of whose it is.
    pub user: String,
    /// The numbers of its owner.
    pub person: Person,
    /// The partition of its job.
    pub partition: String,
    /// The account of its job.
    pub account: Option<String>,
    /// Where it stands.
    pub state: State,
    /// When it started.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// The longest that it may run.
    pub limit_seconds: Option<u64>,
    /// Its nodes.
    pub nodes: Vec<String>,
    /// How many processors it has.
    pub cpus: u64,
    /// How many tasks it has.
    pub tasks: u32,
    /// How its tasks were dealt out to the nodes.
    pub distribution: Distribution,
    /// How it ended.
    pub exit: ExitCode,
    /// Processor time, user and system, in microseconds.
    pub cpu_time_micros: u64,
    /// The most memory that was resident at one time.
    pub peak_memory_bytes: u64,
}

impl StepRecord {
    /// A step of a job that runs on all of its nodes, as far as the job's record tells.
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
            tasks: job.tasks,
            distribution: Distribution::Block,
            exit: job.exit,
            cpu_time_micros: 0,
            peak_memory_bytes: 0,
        }
    }

    /// How long it has lasted.
    pub fn used_seconds(&self, clock: &Clock) -> u64 {
        let Some(started) = self.started else { return 0 };
        u64::try_from(self.ended.unwrap_or(clock.now).micros_since(started) / 1_000_000).unwrap_or(0)
    }

    /// Its id as lists show it: `93+1.0`, `7.batch`.
    pub fn shown_id(&self) -> String {
        format!("{}.{}", self.shown_job, self.step)
    }
}

/// The place of a step among those of its job: the batch script and its like before those with numbers.
pub(super) fn place(step: StepName) -> (u8, u32) {
    match step {
        StepName::Batch => (0, 0),
        StepName::Extern => (1, 0),
        StepName::Interactive => (2, 0),
        StepName::Number(number) => (3, number),
    }
}
