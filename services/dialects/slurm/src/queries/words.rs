//! What the commands that control say: what is about to be done, and questions before it (SL-C-31, SL-C-32).

use super::scancel::{Recipients, Scancel};
use crate::{job_id::StepName, show::record::JobRecord};

impl Scancel {
    /// What `-v` says before a job or step is ended or gets a signal: `scancel: Terminating job 7`.
    pub fn announcement(&self, shown_job: &str, step: Option<StepName>) -> String {
        match (self.signal, step) {
            (None, None) => format!("scancel: Terminating job {shown_job}"),
            (None, Some(step)) => format!("scancel: Terminating step {shown_job}.{step}"),
            (Some(signal), Some(step)) => format!("scancel: Signal {signal} to step {shown_job}.{step}"),
            (Some(signal), None) => {
                let what = if self.recipients == Recipients::Steps { "job" } else { "batch job" };
                format!("scancel: Signal {signal} to {what} {shown_job}")
            }
        }
    }
}

/// What `scancel -i` asks before a job is ended; the answer is taken from the next line (SL-C-32).
pub fn question(job: &JobRecord) -> String {
    format!("Cancel job_id={} name={} partition={} [y/n]? ", job.shown_id(), job.name, job.partition)
}

/// What `scancel -i` asks before a step is ended.
pub fn question_of_step(job: &JobRecord, step: StepName) -> String {
    format!("Cancel step_id={}.{step} name={} partition={} [y/n]? ", job.shown_id(), job.name, job.partition)
}
