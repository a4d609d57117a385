//! The limits of templates for submitted jobs: no change may violate them (HPC-T-10).

use super::{check::read, demanded, own::priority_of};
use crate::{
    codes::Refusal,
    description::{
        attributes::{Attribute, JobAttributes},
        values::JobIds,
    },
    run_time::RunTime,
    template::{Breach, DEFAULT, Template, breaches_among},
};
use muster_schemas::{event::JobChange, filter::TemplateSpec, job::Dependencies, resources::Alternative};

/// A change of a job, to be checked against a template.
#[derive(Clone, Copy, Debug)]
pub struct ChangedJob<'c> {
    /// The change.
    pub change: &'c JobChange,
    /// What the job asks for now.
    pub asked: &'c [Alternative],
    /// Whether the job belongs to this dialect; otherwise its size is in cores.
    pub is_own: bool,
    /// Whether an administrator changes it: then any priority is allowed.
    pub by_administrator: bool,
}

/// The current limits that a change would violate. Only changed values are checked: a template that has become stricter
/// does not block changes of other values (HPC-T-09).
///
/// # Errors
/// A template that cannot be read.
pub fn change_breaches(
    changed: ChangedJob,
    template: Option<&TemplateSpec>,
    default_template: Option<&TemplateSpec>,
) -> Result<Vec<Breach>, Refusal> {
    let read = |template: Option<&TemplateSpec>| template.map_or_else(|| Ok(Template::new(DEFAULT)), read);
    let (values, properties) = changes(changed);
    Ok(breaches_among(&properties, &values, &read(template)?, &read(default_template)?))
}

/// The values after the change, and which attributes change.
fn changes(changed: ChangedJob) -> (JobAttributes, Vec<Attribute>) {
    let ChangedJob { change, asked, is_own, by_administrator } = changed;
    let mut values = JobAttributes::default();
    let mut properties = Vec::new();
    if let Some(alternatives) = &change.alternatives {
        let (before, now) = (demanded::attributes(asked, is_own), demanded::attributes(alternatives, is_own));
        properties.extend(demanded::differences(&before, &now).into_iter().map(|(name, _)| name));
        values = now;
    }
    if let Some(seconds) = walltime(change, asked) {
        values.run_time = seconds.and_then(RunTime::from_seconds);
        properties.push(Attribute::RunTime);
    }
    if let Some(priority) = change.priority.filter(|_| !by_administrator) {
        values.priority = Some(priority_of(priority));
        properties.push(Attribute::Priority);
    }
    let mut take = |property: Attribute, value: &Option<String>, field: &mut Option<String>| {
        if value.is_some() {
            field.clone_from(value);
            properties.push(property);
        }
    };
    take(Attribute::Name, &change.name, &mut values.name);
    take(Attribute::Project, &change.account, &mut values.project);
    if let Some(dependencies) = &change.dependencies {
        values.parent_job_ids = Some(parents(dependencies));
        properties.push(Attribute::ParentJobIds);
    }
    (values, properties)
}

/// The walltime if it changes: `Some(None)` is none.
fn walltime(change: &JobChange, asked: &[Alternative]) -> Option<Option<u64>> {
    let longest = |alternatives: &[Alternative]| {
        let each = alternatives.iter().map(|alternative| alternative.walltime_seconds);
        each.collect::<Option<Vec<u64>>>().and_then(|each| each.into_iter().max())
    };
    let now = match (change.walltime_seconds, &change.alternatives) {
        (Some(seconds), _) => Some(seconds),
        (None, Some(alternatives)) => longest(alternatives),
        (None, None) => return None,
    };
    (now != longest(asked)).then_some(now)
}

fn parents(dependencies: &Dependencies) -> JobIds {
    let ids = dependencies.all_of.iter().flatten().filter_map(|dependency| dependency.job);
    JobIds(ids.map(|id| id.number).collect())
}
