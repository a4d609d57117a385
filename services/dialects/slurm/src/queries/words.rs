//! The announcements and questions of commands that control (SL-C-31, SL-C-32).

use super::scancel::{Recipients, Scancel};
use crate::{job_id::StepName, show::record::JobRecord};

impl Scancel {
    /// The output of `-v` before a job or step is ended or gets a signal: `scancel: Terminating job 7`.
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

/// The question of `scancel -i` before a job is ended; the next line is the answer (SL-C-32).
pub fn question(job: &JobRecord) -> String {
    format!("Cancel job_id={} name={} partition={} [y/n]? ", job.shown_id(), job.name, job.partition)
}

/// The question of `scancel -i` before a step is ended.
pub fn question_of_step(job: &JobRecord, step: StepName) -> String {
    format!("Cancel step_id={}.{step} name={} partition={} [y/n]? ", job.shown_id(), job.name, job.partition)
}
