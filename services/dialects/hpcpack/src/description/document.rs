//! A description as the file has it: texts by name, before names with the same meaning are merged.

use super::{
    DescriptionError, GroupDependency, JobDescription, Place, TaskDescription, Terms,
    attributes::{Attribute, JobAttributes, SYSTEM_TASK_ATTRIBUTES, TaskAttribute, TaskAttributes},
    values::{SystemAttribute, TaskType, UnitType, Value},
};
use crate::{
    codes::{Code, Refusal, Warning, Warnings},
    priority::Priority,
    run_time::RunTime,
};
use std::collections::BTreeMap;

/// Another name of the priority.
pub(crate) const EXPANDED_PRIORITY: &str = "ExpandedPriority";
/// Another name of the run time.
pub(crate) const RUNTIME_SECONDS: &str = "RuntimeSeconds";
/// Old name of `MinCores`; it makes the unit Core.
pub(crate) const OLD_MINIMUM: &str = "MinimumNumberOfProcessors";
/// Old name of `MaxCores`; it makes the unit Core.
pub(crate) const OLD_MAXIMUM: &str = "MaximumNumberOfProcessors";
/// Old way to say that a task is a sweep.
const IS_PARAMETRIC: &str = "IsParametric";
const VERSION: &str = "Version";

/// The text of an attribute and its place.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) text: String,
    pub(crate) place: Option<Place>,
}

/// The attributes of an element by their names, in the case of the tables.
pub(crate) type Givens = BTreeMap<&'static str, Given>;

/// The kind of thing that a set of attributes describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Job,
    Task,
}

impl Kind {
    /// The name as the tables write it; `None` if it is unknown (HPC-J-41).
    pub(super) fn known(self, name: &str) -> Option<&'static str> {
        let others: &[&'static str] = match self {
            Self::Job => &[EXPANDED_PRIORITY, RUNTIME_SECONDS, OLD_MINIMUM, OLD_MAXIMUM, VERSION],
            Self::Task => &[RUNTIME_SECONDS, OLD_MINIMUM, OLD_MAXIMUM, IS_PARAMETRIC, VERSION],
        };
        let is_named = |known: &&'static str| known.eq_ignore_ascii_case(name);
        let other = || others.iter().copied().find(is_named);
        match self {
            Self::Job => {
                let system = || SystemAttribute::ALL.iter().map(|known| known.name()).find(is_named);
                Attribute::named(name).map(Attribute::name).or_else(other).or_else(system)
            }
            Self::Task => {
                let system = || SYSTEM_TASK_ATTRIBUTES.into_iter().find(is_named);
                TaskAttribute::named(name).map(TaskAttribute::name).or_else(other).or_else(system)
            }
        }
    }

    /// The word for it in messages.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Task => "task",
        }
    }
}

/// Adds an attribute.
///
/// # Errors
/// `JobXmlNotValid` if it is already there in another case (HPC-J-41).
pub(super) fn add(
    givens: &mut Givens,
    warnings: &mut Warnings,
    kind: Kind,
    name: &str,
    given: Given,
) -> Result<(), DescriptionError> {
    let Some(known) = kind.known(name) else {
        let shown = muster_schemas::policy::words::shorten(name);
        let text = format!("unknown attribute `{shown}` of a {} was ignored", kind.word());
        warnings.push(Code::UnknownJobTerm, text);
        return Ok(());
    };
    let place = given.place;
    if givens.insert(known, given).is_some() {
        let text = format!("the attribute `{known}` is given twice, in different case or in the same");
        return Err(DescriptionError::new(Code::JobXmlNotValid, text).at(place));
    }
    Ok(())
}

/// A description as the file has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    pub(crate) attributes: Givens,
    pub(crate) extended_terms: Terms,
    pub(crate) custom_properties: Terms,
    pub(crate) request: BTreeMap<String, String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) dependencies: Vec<GroupDependency>,
    pub(crate) tasks: Vec<TaskDescription>,
    pub(crate) warnings: Vec<Warning>,
}

impl Document {
    /// The resulting description.
    pub(crate) fn into_description(self) -> Result<(JobDescription, Vec<Warning>), DescriptionError> {
        let description = JobDescription {
            attributes: job_attributes(&self.attributes)?,
            extended_terms: self.extended_terms,
            custom_properties: self.custom_properties,
            request: self.request,
            environment: self.environment,
            dependencies: self.dependencies,
            tasks: self.tasks,
        };
        Ok((description, self.warnings))
    }
}

/// Merges the attributes of a job that have several names.
pub(crate) fn job_attributes(givens: &Givens) -> Result<JobAttributes, DescriptionError> {
    let mut attributes = JobAttributes::default();
    for (name, given) in givens {
        if let Some(attribute) = Attribute::named(name) {
            attributes.set(attribute, Some(&given.text)).map_err(|refusal| error(refusal, given))?;
        }
    }
    join(&mut attributes.priority, givens, EXPANDED_PRIORITY, Priority::parse, Priority::agree)?;
    join(&mut attributes.run_time, givens, RUNTIME_SECONDS, RunTime::parse_seconds, RunTime::agree)?;
    join_old_sizes(givens, &mut attributes.unit_type, &mut attributes.min_cores, &mut attributes.max_cores)?;
    Ok(attributes)
}

/// Merges the attributes of a task that have several names.
pub(super) fn task_attributes(givens: &Givens) -> Result<TaskAttributes, DescriptionError> {
    let mut attributes = TaskAttributes::default();
    for (name, given) in givens {
        if let Some(attribute) = TaskAttribute::named(name) {
            attributes.set(attribute, Some(&given.text)).map_err(|refusal| error(refusal, given))?;
        }
    }
    join(&mut attributes.run_time, givens, RUNTIME_SECONDS, RunTime::parse_seconds, RunTime::agree)?;
    join_old_sizes(givens, &mut attributes.unit_type, &mut attributes.min_cores, &mut attributes.max_cores)?;
    if let Some(given) = givens.get(IS_PARAMETRIC) {
        let is_parametric = bool::read(&given.text);
        let is_parametric = is_parametric
            .map_err(|refusal| error(super::attributes::at(IS_PARAMETRIC, &given.text, refusal), given))?;
        if is_parametric {
            let sweep = TaskType::ParametricSweep;
            let is_same = |first: TaskType, second| same(first, second, "Type", IS_PARAMETRIC);
            put(&mut attributes.task_type, sweep, is_same).map_err(|refusal| error(refusal, given))?;
        }
    }
    Ok(attributes)
}

fn join_old_sizes(
    givens: &Givens,
    unit: &mut Option<UnitType>,
    min: &mut Option<i32>,
    max: &mut Option<i32>,
) -> Result<(), DescriptionError> {
    for (name, new_name, slot) in [(OLD_MINIMUM, "MinCores", min), (OLD_MAXIMUM, "MaxCores", max)] {
        let read = |text: &str| i32::read(text).map_err(|refusal| super::attributes::at(name, text, refusal));
        join(slot, givens, name, read, |new, old| same(new, old, new_name, name))?;
        if let Some(given) = givens.get(name) {
            let is_same = |first: UnitType, second| same(first, second, "UnitType", name);
            put(unit, UnitType::Core, is_same).map_err(|refusal| error(refusal, given))?;
        }
    }
    Ok(())
}

/// Merges the value under another name into the slot.
fn join<T: Copy>(
    slot: &mut Option<T>,
    givens: &Givens,
    name: &str,
    read: impl Fn(&str) -> Result<T, Refusal>,
    agree: impl Fn(T, T) -> Result<T, Refusal>,
) -> Result<(), DescriptionError> {
    let Some(given) = givens.get(name) else { return Ok(()) };
    let value = read(&given.text).map_err(|refusal| error(refusal, given))?;
    put(slot, value, agree).map_err(|refusal| error(refusal, given))
}

fn put<T: Copy>(slot: &mut Option<T>, value: T, agree: impl Fn(T, T) -> Result<T, Refusal>) -> Result<(), Refusal> {
    *slot = Some(match *slot {
        None => value,
        Some(first) => agree(first, value)?,
    });
    Ok(())
}

fn same<T: PartialEq>(first: T, second: T, name: &str, other: &str) -> Result<T, Refusal> {
    match first == second {
        true => Ok(second),
        false => Err(Refusal::new(Code::JobXmlNotValid, format!("{name} and {other} contradict each other"))),
    }
}

fn error(refusal: Refusal, given: &Given) -> DescriptionError {
    DescriptionError::from(refusal).at(given.place)
}
