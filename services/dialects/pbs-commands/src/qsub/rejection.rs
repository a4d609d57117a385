//! Jobs that the submission filters refuse.

use muster_schemas::views::JobView;

/// Why the submission filters refused a job, if they did.
pub fn rejection(view: &JobView) -> Option<String> {
    let outcome = view.outcome.as_ref()?;
    Some(outcome.detail.clone().unwrap_or_else(|| "Job rejected by the filters of the site".to_owned()))
}
