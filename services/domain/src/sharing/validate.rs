//! Limits on jobs that share their cores.

use crate::validate::{invalid, label, shown};
use muster_schemas::{
    JobId,
    command::Refusal,
    domains,
    job::{JobSpec, JobType},
};

/// A job shares in one way at most, and has one component: its own components never overlap.
pub(crate) fn of_job(spec: &JobSpec) -> Result<(), Refusal> {
    let mut ways = 0;
    for kind in &spec.types {
        match kind {
            JobType::Placeholder(word) | JobType::Allowed(word) => {
                label("types: a label", word)?;
                if word.is_empty() {
                    return invalid("types: a label is empty".into());
                }
            }
            JobType::Timesharing { .. } => {}
            _ => continue,
        }
        ways += 1;
    }
    let name = shown(&spec.name);
    if ways > 1 {
        return invalid(format!("types: job `{name}` shares its cores in {ways} ways, expected one"));
    }
    let opens = domains::opened(&spec.types, JobId::job(0)).is_some();
    if ways > 0 && (opens || domains::entered(&spec.types).is_some()) {
        return invalid(format!(
            "types: job `{name}` shares its cores, so it neither opens a planning domain nor runs in one"
        ));
    }
    if ways > 0 && spec.components.len() > 1 {
        let components = spec.components.len();
        return invalid(format!("types: job `{name}` shares its cores, so it has one component, not {components}"));
    }
    Ok(())
}
