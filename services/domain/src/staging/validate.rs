//! Limits on staging.

use crate::{
    filters::validate::filter_spec,
    validate::{MAX_LIST, bytes, count, identifier, invalid, no_nul, number},
};
use muster_schemas::{
    command::Refusal,
    filter::{FilterForm, FilterSpec, StagingSettings},
    job::ComponentStaging,
};
use std::collections::BTreeSet;

/// The greatest size of all directives of a component, in bytes.
const MAX_DIRECTIVE_BYTES: usize = 64 << 10;

/// The greatest time limit of the staging program: a week.
const MAX_TIMEOUT_SECONDS: u64 = 604_800;

/// Checks the staging of a job with this many components.
pub(crate) fn of_job(staging: &[ComponentStaging], components: usize) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    for staging in staging {
        let number = staging.component;
        if number as usize >= components {
            return invalid(format!("staging: component {number} is named, the job has {components}"));
        }
        if !seen.insert(number) {
            return invalid(format!("staging: component {number} is named twice"));
        }
        component(staging)?;
    }
    Ok(())
}

fn component(staging: &ComponentStaging) -> Result<(), Refusal> {
    let field = format!("staging: component {}", staging.component);
    let ComponentStaging { directives, creates, uses, destroys, .. } = staging;
    if directives.is_empty() {
        return invalid(format!("{field}: has no directives"));
    }
    count(&format!("{field}: directives"), directives.len(), MAX_LIST)?;
    bytes(&format!("{field}: directives"), directives.iter().map(String::len).sum(), MAX_DIRECTIVE_BYTES)?;
    directives.iter().try_for_each(|line| no_nul(&field, line))?;
    count(&format!("{field}: buffers"), creates.len() + uses.len() + destroys.len(), MAX_LIST)?;
    [creates, uses, destroys].into_iter().flatten().try_for_each(|name| identifier(&field, name))
}

/// The rules for staging the files of jobs.
pub(crate) fn staging_settings(settings: &StagingSettings) -> Result<(), Refusal> {
    if let Some(path) = settings.program.clone() {
        let name = "program".to_owned();
        filter_spec("staging", &FilterSpec { name, path, form: FilterForm::Exec, revert_on_unknown: false })?;
    }
    let timeouts = [
        ("staging.stage_in_timeout_seconds", settings.stage_in_timeout_seconds),
        ("staging.stage_out_timeout_seconds", settings.stage_out_timeout_seconds),
    ];
    number("staging.copy_retry_seconds", settings.copy_retry_seconds.into(), 0, MAX_TIMEOUT_SECONDS)?;
    timeouts.into_iter().try_for_each(|(field, value)| number(field, u64::from(value), 1, MAX_TIMEOUT_SECONDS))
}
