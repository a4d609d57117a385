//! The work that needs a dialect, which can read and write job descriptions. A runner itself knows no dialect.

use crate::Answer;
use bytes::Bytes;
use muster_schemas::{
    event::Validated,
    filter::{self, FilterAction, FilterHold, FilterKind, FilterReport, JobWarning, TemplateSpec},
    filter_order::DescribedJob,
    time::Timestamp,
};
use std::sync::Arc;

/// The description of a job that a filter gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// As XML.
    pub xml: Bytes,
    /// The same as JSON, for filters that prefer it.
    pub json: Bytes,
}

/// The meaning of a filter's answer, in addition to how its program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// What it left in its files.
    pub file: filter::FileAfter,
    /// The text to show on the job.
    pub message: Option<String>,
    /// How long to hold the job.
    pub hold_until: Option<FilterHold>,
    /// What was ignored or not understood.
    pub warnings: Vec<JobWarning>,
}

impl Judgement {
    /// The full report on a call: what its filter was told, how its program ended, and what that means.
    pub fn into_report(self, told: &Description, answer: Answer) -> FilterReport {
        FilterReport {
            duration_micros: u64::try_from(answer.duration.as_micros()).unwrap_or(u64::MAX),
            program_hash: answer.program_hash,
            input_hash: blake3::hash(&told.xml).to_hex().to_string(),
            file: self.file,
            message: self.message,
            hold_until: self.hold_until,
            warnings: self.warnings,
            stdout: answer.stdout.text(),
            stderr: answer.stderr.text(),
            is_output_cut: answer.stdout.truncated || answer.stderr.truncated,
            exit: answer.result,
        }
    }
}

/// Reads and writes descriptions of jobs. Many threads call it.
pub trait Descriptions: Send + Sync + 'static {
    /// The description of a job for filters.
    ///
    /// # Errors
    /// Why it cannot be written, for people: the job's own description cannot be read.
    fn describe(&self, job: &DescribedJob) -> Result<Description, String>;

    /// The description of a component for the staging program: its script instead of the XML, and the description of
    /// the component as JSON.
    ///
    /// # Errors
    /// Why there is none, for people: the job has no such component.
    fn staged(&self, job: &DescribedJob) -> Result<Description, String>;

    /// The meaning of the answer of a filter that was told this.
    fn judge(&self, kind: FilterKind, action: FilterAction, told: &Description, answer: &Answer) -> Judgement;

    /// Checks a job against its template and makes the job to schedule. `templates` are those that it may name.
    ///
    /// # Errors
    /// Why the job is refused, for people; it begins with a code in brackets.
    fn validate(
        &self,
        job: &DescribedJob,
        templates: &[Arc<TemplateSpec>],
        default_template: Option<&TemplateSpec>,
        now: Timestamp,
    ) -> Result<Validated, String>;
}
