//! Why the submission filters of the site refused a job.

use muster_schemas::views::{EntryWord, JobView};

/// Why they refused a job, if they did.
pub(super) fn rejection(view: &JobView) -> Option<String> {
    let filtering = view.filtering.as_ref().filter(|filtering| filtering.entry == EntryWord::Refused)?;
    let detail = || view.outcome.as_ref().and_then(|outcome| outcome.detail.clone());
    let said = filtering.message.clone().or_else(detail);
    Some(said.unwrap_or_else(|| "Job rejected by the filters of the site".to_owned()))
}
