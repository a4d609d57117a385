//! What the system answers to a submission.

use super::ended::Failure;
use muster_client::ClientError;
use muster_oar::refusal::{Code, Refusal};
use muster_schemas::views::{EntryWord, ErrorCode, JobView};

/// Why the system refuses a submission, with OAR's code (OAR-C-04).
pub fn refused(error: ClientError) -> Failure {
    if !error.is_refusal() {
        return Failure { text: error.to_string(), status: 3 };
    }
    let text = error.to_string();
    let code = match error.code() {
        Some(ErrorCode::NotFound) if text.contains("queue") => Code::Queue,
        Some(ErrorCode::PermissionDenied) => Code::Rule,
        _ if text.contains("it asks for") || text.contains("never") => Code::Resources,
        _ => Code::Rule,
    };
    Refusal::new(code, text).into()
}

/// Requires that the submission filters of the site did not refuse a job (OAR-C-07).
pub fn require_accepted(view: &JobView) -> Result<(), Failure> {
    let Some(filtering) = view.filtering.as_ref().filter(|filtering| filtering.entry == EntryWord::Refused) else {
        return Ok(());
    };
    let detail = || view.outcome.as_ref().and_then(|outcome| outcome.detail.clone());
    let said = filtering.message.clone().or_else(detail);
    let said = said.unwrap_or_else(|| "the filters of the site refused the job".to_owned());
    Err(Refusal::new(Code::Rule, said).into())
}
