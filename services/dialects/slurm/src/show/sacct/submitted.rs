//! `sacct --batch-script` and `--env-vars`: what jobs were submitted with (SL-A-07).

use crate::burst_buffer;
use muster_schemas::views::JobDetail;

/// The line under a heading.
const RULE: &str = "--------------------------------------------------------------------------------";

/// The script of a batch job; `NONE` for other jobs, and for those of other users.
pub fn script_of(detail: &JobDetail) -> String {
    let script = burst_buffer::script_of(&detail.spec, 0).filter(|_| !detail.redacted);
    below(&format!("Batch Script for {}", detail.job.id), script)
}

/// The environment that a job was submitted with; `NONE` for jobs of other users.
pub fn environment_of(detail: &JobDetail) -> String {
    let lines = detail.spec.environment.iter().map(|(name, value)| format!("{name}={value}\n"));
    let text = (!detail.redacted).then(|| lines.collect());
    below(&format!("Environment used for {} (must be batch to be displayed)", detail.job.id), text)
}

fn below(heading: &str, text: Option<String>) -> String {
    let text = text.filter(|text| !text.is_empty()).unwrap_or_else(|| "NONE\n".to_owned());
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{heading}\n{RULE}\n{text}{end}")
}
