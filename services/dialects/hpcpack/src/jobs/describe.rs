//! The descriptions that filters get (HPC-F-14, F-20, F-38, HPC-T-01).

use super::{
    FORMAT_ATTRIBUTE, demanded,
    document::unpack,
    own::{self, priority_of},
};
use crate::{
    description::{
        DescriptionError, Format, JobDescription, SystemValues,
        attributes::JobAttributes,
        values::{self, SystemAttribute},
    },
    run_time::RunTime,
    size,
    template::DEFAULT,
};
use muster_schemas::{filter::JobDocument, filter_order::DescribedJob, job::JobState, time::Timestamp};
use std::collections::BTreeMap;

/// A description as a filter gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its format.
    pub format: Format,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The description of a job for a filter. For submission filters it has what was specified, including changes of
/// earlier filters, without defaults (HPC-F-20); later it has the values in force (HPC-F-38). It always names a
/// template (HPC-T-01). A job without a description gets one made from its specification, as XML.
///
/// # Errors
/// A stored description that cannot be read.
pub fn describe(job: &DescribedJob) -> Result<Described, DescriptionError> {
    let (format, description) = told(job)?;
    let bytes = description.write_as(format, &system_values(job)).into_bytes();
    Ok(Described { format, bytes })
}

/// The same as XML and as JSON, for filters that prefer either. `request` is the job's request in the words of its own
/// dialect; a description that the job has, or that a filter changed, takes precedence.
///
/// # Errors
/// A stored description that cannot be read.
pub fn described_in_both(
    job: &DescribedJob,
    request: impl FnOnce() -> BTreeMap<String, String>,
) -> Result<(String, String), DescriptionError> {
    let (_, mut description) = told(job)?;
    if job.document.is_none() {
        description.request = request();
    }
    let system = system_values(job);
    Ok((description.write_as(Format::Xml, &system), description.write_as(Format::Json, &system)))
}

/// The request in the words of the job's own dialect in a description that filters left.
///
/// # Errors
/// A description that cannot be read.
pub fn request_of(document: &JobDocument) -> Result<BTreeMap<String, String>, DescriptionError> {
    let (format, bytes) = unpack(document)?;
    Ok(JobDescription::read_as(format, &bytes)?.0.request)
}

/// The description for a filter.
fn told(job: &DescribedJob) -> Result<(Format, JobDescription), DescriptionError> {
    let (format, mut description) = current(job)?;
    if !job.is_entering {
        bring_up_to_date(&mut description, job);
    }
    Ok((format, description))
}

/// The description of a job for submitting it again (HPC-J-48): the values in force, or what was received if the job
/// has not been checked, without a hold that has passed. Its `State` is the given one, because the state that filters
/// see does not say how the job ended.
///
/// # Errors
/// A stored description that cannot be read.
pub fn exported(
    job: &DescribedJob,
    state: values::JobState,
    format: Format,
    now: Timestamp,
) -> Result<String, DescriptionError> {
    let (_, mut description) = current(job)?;
    if !job.is_entering {
        bring_up_to_date(&mut description, job);
    }
    description.attributes.hold_until = description.attributes.hold_until.filter(|time| *time > now);
    Ok(description.write_as(format, &system_values(job).with(SystemAttribute::State, state)))
}

/// The description in force, with a template.
pub(super) fn current(job: &DescribedJob) -> Result<(Format, JobDescription), DescriptionError> {
    let (format, mut description) = match &job.document {
        Some(document) => {
            let (format, bytes) = unpack(document)?;
            let mut description = JobDescription::read_as(format, &bytes)?.0;
            if job.spec.attributes.contains_key(FORMAT_ATTRIBUTE) {
                // The submitter must not pose as muster.
                description.request.clear();
            }
            (format, description)
        }
        None => (Format::Xml, own::description(job)),
    };
    let named = || job.template.clone().unwrap_or_else(|| DEFAULT.to_owned());
    let template = description.attributes.job_template.get_or_insert_with(named);
    if template.is_empty() {
        *template = named();
    }
    Ok((format, description))
}

/// Applies what may have changed since the job was checked.
fn bring_up_to_date(description: &mut JobDescription, job: &DescribedJob) {
    let attributes = &mut description.attributes;
    if attributes.name.as_deref().unwrap_or_default() != job.name && !is_made_up(job, attributes.name.as_deref()) {
        attributes.name = Some(job.name.clone());
    }
    attributes.priority = Some(priority_of(job.priority));
    match job.walltime_seconds.and_then(RunTime::from_seconds) {
        Some(run_time) => attributes.run_time = Some(run_time),
        None if attributes.run_time.is_some() => attributes.run_time = Some(RunTime::Infinite),
        None => {}
    }
    take_demand(attributes, job);
}

/// Applies changes of the demand; the rest keeps its written form.
fn take_demand(attributes: &mut JobAttributes, job: &DescribedJob) {
    let Some(before) = job.spec.components.first() else { return };
    let is_own = job.spec.attributes.contains_key(FORMAT_ATTRIBUTE);
    let asked = |alternatives| demanded::attributes(alternatives, is_own);
    let differences = demanded::differences(&asked(&before.alternatives), &asked(&job.alternatives));
    for (attribute, value) in differences {
        // A value that no description can hold, such as a very long list of licences, stays unchanged.
        let _ = attributes.set(attribute, value.as_deref());
        if size::unit_of(attribute).is_some() {
            (attributes.auto_calculate_min, attributes.auto_calculate_max) = (None, None);
        }
    }
}

/// Whether the job's name is only the default one.
fn is_made_up(job: &DescribedJob, described: Option<&str>) -> bool {
    described.is_none_or(str::is_empty) && job.name == "job"
}

/// The attributes that only the system sets.
fn system_values(job: &DescribedJob) -> SystemValues {
    let state = match job.state {
        _ if job.is_entering => "ExternalValidation",
        // A filter that reverts gets the description of its own call, whatever state the job is in now.
        JobState::Held | JobState::Queued | JobState::Finished => "Queued",
        JobState::Launching | JobState::Running | JobState::Suspended | JobState::Finishing => "Running",
    };
    SystemValues::default()
        .with(SystemAttribute::Id, job.id)
        .with(SystemAttribute::State, state)
        .with(SystemAttribute::Owner, &job.owner.user)
        .with(SystemAttribute::UserName, &job.owner.user)
        .with(SystemAttribute::SubmitTime, job.submitted)
        .with(SystemAttribute::CreateTime, job.submitted)
        .with(SystemAttribute::JobType, "Batch")
}
