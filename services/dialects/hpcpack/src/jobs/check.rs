//! The check after the submission filters: compares the description with its template and makes the job (HPC-J-03).

use super::{
    FORMAT_ATTRIBUTE,
    describe::current,
    document::pack,
    own,
    spec::{self, Made, hold_of},
};
use crate::{
    codes::{Code, Refusal, Warning},
    description::{Format, JobDescription, SystemValues, attributes::JobAttributes},
    size::{self, Size},
    tasks,
    template::{DEFAULT, Template, breaches, effective},
};
use muster_schemas::{
    event::Validated,
    filter::{JobWarning, TemplateSpec},
    filter_order::DescribedJob,
    time::Timestamp,
};
use std::sync::Arc;

/// Checks a job that passed the submission filters, with the values and the template in force (HPC-T-07), and makes the
/// job to schedule from its description. `groups` are the names of its owner's groups, `candidates` the existing
/// templates among those that it may name.
///
/// # Errors
/// The text of the refusal: all that is wrong, each with its code in brackets (HPC-T-05, HPC-E-10).
pub fn validate(
    job: &DescribedJob,
    groups: &[String],
    candidates: &[Arc<TemplateSpec>],
    default_template: Option<&TemplateSpec>,
    now: Timestamp,
) -> Result<Validated, String> {
    if !job.changed.is_empty() {
        return validate_components(job, groups, (candidates, default_template), now);
    }
    let (format, description) = current(job).map_err(|error| error.to_string())?;
    let templates =
        Templates::find(&description, candidates, default_template).map_err(|refusal| refusal.to_string())?;
    templates.named.check_access(&job.owner.user, groups).map_err(|refusal| refusal.to_string())?;
    let checked = match job.spec.attributes.contains_key(FORMAT_ATTRIBUTE) {
        true => check_own(job, &description, &templates, now),
        false => check_foreign(job, description.clone(), &templates, now),
    };
    let Checked { spec, tasks, hold_until, values, warnings } = checked.map_err(|faults| faults.join("; "))?;
    let document = JobDescription { attributes: values, ..description };
    let bytes = document.write_as(format, &SystemValues::default());
    Ok(Validated {
        template: Some(templates.named.name.clone()),
        revision: templates.revision,
        spec,
        tasks,
        document: Some(pack(format, bytes.as_bytes())),
        hold_until,
        warnings: warnings.into_iter().map(Into::into).collect(),
    })
}

/// Like [`validate`], for a job of several components of which filters changed some: each is checked like a separate
/// job, and settings of the whole job come from its first component alone (SL-S-21).
fn validate_components(
    job: &DescribedJob,
    groups: &[String],
    (candidates, default_template): (&[Arc<TemplateSpec>], Option<&TemplateSpec>),
    now: Timestamp,
) -> Result<Validated, String> {
    let mut whole = Validated { template: job.template.clone(), spec: (*job.spec).clone(), ..Validated::default() };
    for (offset, document) in &job.changed {
        let part = job.of_component(*offset).ok_or_else(|| format!("{offset}: there is no such component"))?;
        let part = DescribedJob { document: Some(document.clone()), ..part };
        let prefixed = |why: String| format!("{offset}: {why}");
        let checked = validate(&part, groups, candidates, default_template, now).map_err(prefixed)?;
        let Validated { mut spec, template, revision, hold_until, warnings, .. } = checked;
        let Some(component) = spec.components.pop() else { continue };
        let mut components = std::mem::take(&mut whole.spec.components);
        components[*offset as usize] = component;
        if *offset == 0 {
            whole = Validated { template, revision, hold_until, spec, ..whole };
        }
        whole.spec.components = components;
        whole.warnings.extend(warnings);
    }
    Ok(whole)
}

/// The warning as jobs store it.
impl From<Warning> for JobWarning {
    fn from(warning: Warning) -> Self {
        Self { code: warning.code.name().to_owned(), text: warning.text }
    }
}

/// The templates for the check of a job.
struct Templates {
    named: Template,
    revision: u64,
    default: Template,
}

impl Templates {
    fn find(
        description: &JobDescription,
        candidates: &[Arc<TemplateSpec>],
        default_template: Option<&TemplateSpec>,
    ) -> Result<Self, Refusal> {
        let wanted = description.attributes.job_template.as_deref().unwrap_or(DEFAULT);
        // Names of templates ignore case.
        let is_wanted = |template: &&TemplateSpec| template.name.to_lowercase() == wanted.to_lowercase();
        let found = candidates.iter().map(|candidate| &**candidate).chain(default_template).find(is_wanted);
        let (named, revision) = match found {
            Some(found) => (read(found)?, found.revision),
            None if wanted.eq_ignore_ascii_case(DEFAULT) => (Template::new(DEFAULT), 0),
            None => {
                return Err(Refusal::new(Code::TemplateNotFound, format!("there is no template '{wanted}'")));
            }
        };
        let default = default_template.map(read).transpose()?.unwrap_or_else(|| Template::new(DEFAULT));
        Ok(Self { named, revision, default })
    }
}

/// The contents of a stored template.
pub(super) fn read(stored: &TemplateSpec) -> Result<Template, Refusal> {
    if stored.text.trim().is_empty() {
        return Ok(Template::new(stored.name.clone()));
    }
    let (mut template, _) = Template::read(stored.text.as_bytes()).map_err(|error| {
        Refusal::new(Code::TemplateXmlNotValid, format!("the template '{}' cannot be read: {error}", stored.name))
    })?;
    template.name.clone_from(&stored.name);
    Ok(template)
}

/// The result of the checks.
struct Checked {
    spec: muster_schemas::job::JobSpec,
    tasks: Option<muster_schemas::tasks::TaskList>,
    hold_until: Option<Timestamp>,
    /// The values in force, which the description shows from now on (HPC-F-38).
    values: JobAttributes,
    warnings: Vec<Warning>,
}

/// Checks a job that has its own description.
fn check_own(
    job: &DescribedJob,
    description: &JobDescription,
    templates: &Templates,
    now: Timestamp,
) -> Result<Checked, Vec<String>> {
    let mut values = effective(&description.attributes, &templates.named, &templates.default);
    let mut faults = Vec::new();
    let size = Size::of(&values, &description.tasks).map_err(|refusal| vec![refusal.to_string()])?;
    faults.extend(breaches(&values, size, &templates.named, &templates.default).iter().map(ToString::to_string));
    let tasks = tasks::faults(description, size, values.run_time);
    faults.extend(tasks.iter().map(ToString::to_string));
    let hold_until = hold_of(&values, job.submitted, now).map_err(|refusal| faults.push(refusal.to_string()));
    let made = spec::make(description, &values, size, &job.spec, &job.owner.user);
    let made = made.map_err(|refusals| {
        // The faults of the tasks alone are in the list already.
        let told: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        faults.extend(told.into_iter().filter(|text| !tasks.iter().any(|fault| fault.to_string() == *text)));
    });
    let (Ok(made), Ok(hold_until), true) = (made, hold_until, faults.is_empty()) else { return Err(faults) };
    let Made { spec, tasks, mut warnings } = made;
    warnings.extend(size::unused(&description.attributes));
    // The scheduled size is shown; it is computed again when the job is submitted again.
    size.write_to(&mut values);
    Ok(Checked { spec, tasks: Some(tasks), hold_until, values, warnings })
}

/// Checks a job of another dialect whose description a filter changed. Templates limit it and give it a run time.
fn check_foreign(
    job: &DescribedJob,
    mut description: JobDescription,
    templates: &Templates,
    now: Timestamp,
) -> Result<Checked, Vec<String>> {
    let told = |refusal: Refusal| vec![refusal.to_string()];
    let values = effective(&description.attributes, &templates.named, &templates.default);
    let size = Size::of(&values, &description.tasks).map_err(told)?;
    let breaches = breaches(&values, size, &templates.named, &templates.default);
    if !breaches.is_empty() {
        return Err(breaches.iter().map(ToString::to_string).collect());
    }
    description.attributes.run_time = description.attributes.run_time.or(values.run_time);
    let changed = own::change(job, &description, now).map_err(told)?;
    Ok(Checked {
        spec: changed.spec,
        tasks: job.tasks.as_deref().cloned(),
        hold_until: changed.hold_until,
        values: description.attributes,
        warnings: changed.warnings,
    })
}

/// Reads bytes as a description before they are submitted.
///
/// # Errors
/// The error, with line and column (HPC-J-47).
pub fn readable(
    bytes: &[u8],
) -> Result<(Format, JobDescription, Vec<JobWarning>), crate::description::DescriptionError> {
    let format = Format::of(bytes);
    let (description, warnings) = JobDescription::read_as(format, bytes)?;
    Ok((format, description, warnings.into_iter().map(Into::into).collect()))
}
