//! A line of `sacct`.

use super::JobFlag;
use crate::{
    show::{Clock, record::JobRecord, step::StepRecord},
    size::Units,
    words::{ExitCode, State},
};
use muster_schemas::{job::Usage, time::Timestamp};
use std::{collections::BTreeSet, sync::Arc};

/// A line of `sacct`: a job, a component, one of its attempts, or one of its steps.
#[derive(Clone, Debug)]
pub struct Row {
    /// The job, component or attempt.
    pub job: Arc<JobRecord>,
    /// The step, if it is the line of one.
    pub step: Option<StepRecord>,
    /// The resources used.
    pub usage: Usage,
    /// The highest of the exit codes of its `srun` steps.
    pub derived_exit: ExitCode,
    /// The number of the user who cancelled it.
    pub cancelled_by: Option<u32>,
    /// The name of the cluster.
    pub cluster: Arc<str>,
    /// The node that was lost, if that ended it.
    pub failed_node: Option<String>,
    /// How the attempt was handled.
    pub flags: BTreeSet<JobFlag>,
    /// The number of the association that is charged, if it was asked for.
    pub association: Option<u32>,
    /// The unit in which its sizes are shown.
    pub units: Units,
}

impl Row {
    /// The id: `93+1`, `93+1.0` (SL-A-02, SL-A-05).
    pub fn shown_id(&self) -> String {
        match &self.step {
            Some(step) => step.shown_id(),
            None => self.job.shown_id().to_string(),
        }
    }

    /// The state of the step, or of the job.
    pub fn state(&self) -> State {
        self.step.as_ref().map_or(self.job.state, |step| step.state).in_accounting()
    }

    /// When it started.
    pub fn started(&self) -> Option<Timestamp> {
        match &self.step {
            Some(step) => step.started,
            None => self.job.started,
        }
    }

    /// When it ended.
    pub fn ended(&self) -> Option<Timestamp> {
        match &self.step {
            Some(step) => step.ended,
            None => self.job.ended,
        }
    }

    /// How long it lasted.
    pub fn elapsed_seconds(&self, clock: &Clock) -> u64 {
        match &self.step {
            Some(step) => step.used_seconds(clock),
            None => self.job.used_seconds(clock),
        }
    }

    /// How long its job waited after it could start, in seconds.
    pub fn planned_seconds(&self, clock: &Clock) -> u64 {
        let until = self.job.started.or(self.job.ended).unwrap_or(clock.now);
        let from = self.job.eligible.unwrap_or(self.job.submitted);
        u64::try_from(until.micros_since(from) / 1_000_000).unwrap_or(0)
    }

    /// How many processors it had.
    pub fn cpus(&self) -> u64 {
        match &self.step {
            Some(step) => step.cpus,
            None if self.job.started.is_none() => 0,
            None => self.job.cpus,
        }
    }
}
