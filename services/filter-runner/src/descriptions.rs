//! What a runner needs somebody for who can read and write job descriptions: a dialect. A runner knows none.

use crate::Answer;
use bytes::Bytes;
use muster_schemas::{
    event::Validated,
    filter::{self, FilterAction, FilterHold, FilterKind, FilterReport, JobWarning, TemplateSpec},
    filter_order::DescribedJob,
    time::Timestamp,
};
use std::sync::Arc;

/// A job as a filter is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// As XML.
    pub xml: Bytes,
    /// The same as JSON, for filters that prefer it.
    pub json: Bytes,
}

/// What an answer of a filter says, beside how its program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// What it left in its files.
    pub file: filter::FileAfter,
    /// The text that it wants shown on the job.
    pub message: Option<String>,
    /// Until when it wants the job held.
    pub hold_until: Option<FilterHold>,
    /// What was left out or not understood.
    pub warnings: Vec<JobWarning>,
}

impl Judgement {
    /// All that there is to say of a call: what its filter was told, how its program ended, and what that says.
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

/// Reads and writes descriptions of jobs. It is called from many threads.
pub trait Descriptions: Send + Sync + 'static {
    /// A job as filters are told of it.
    ///
    /// # Errors
    /// Why none can be written, for people: what it had been described with cannot be read.
    fn describe(&self, job: &DescribedJob) -> Result<Description, String>;

    /// A component of a job as the staging program is told of it: its script in the place of the XML, and the description of
    /// the component as JSON.
    ///
    /// # Errors
    /// Why it cannot be told, for people: the job has no such component.
    fn staged(&self, job: &DescribedJob) -> Result<Description, String>;

    /// What the answer of a filter says that was told this.
    fn judge(&self, kind: FilterKind, action: FilterAction, told: &Description, answer: &Answer) -> Judgement;

    /// Checks a job against its template and makes of it what is scheduled. `templates` are those that it may name.
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
