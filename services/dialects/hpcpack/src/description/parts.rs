//! The parts of a job's specification.

use super::{
    attributes::{JobAttributes, TaskAttributes},
    terms::Terms,
    values::SystemAttribute,
};
use std::{collections::BTreeMap, fmt};

/// The namespace that is written. Any namespace is read (HPC-J-40).
pub const NAMESPACE: &str = "http://schemas.microsoft.com/HPCS2008R2/scheduler/";

/// The version that is written (HPC-J-40).
pub const VERSION: &str = "3.000";

/// The specification of a job. `None` and empty mean "not specified".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobDescription {
    /// The job's own attributes.
    pub attributes: JobAttributes,
    /// Terms for filters; the scheduler does not interpret them (HPC-J-43).
    pub extended_terms: Terms,
    /// Properties for people; the scheduler does not interpret them (HPC-J-43).
    pub custom_properties: Terms,
    /// The request of a job submitted without a description, in the words of its own dialect, by name (SL-S-21).
    pub request: BTreeMap<String, String>,
    /// Variables that the tasks inherit (HPC-J-44).
    pub environment: BTreeMap<String, String>,
    /// Which groups of tasks wait for which others.
    pub dependencies: Vec<GroupDependency>,
    /// The tasks, in order.
    pub tasks: Vec<TaskDescription>,
}

/// The specification of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskDescription {
    /// The task's own attributes.
    pub attributes: TaskAttributes,
    /// Terms for programs; the scheduler does not interpret them.
    pub extended_terms: Terms,
    /// Properties for people; the scheduler does not interpret them.
    pub custom_properties: Terms,
    /// Its own variables, which override those of the job (HPC-J-44).
    pub environment: BTreeMap<String, String>,
}

/// The tasks of one group wait for those of another, by their `GroupId`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupDependency {
    /// The group that is first.
    pub parent: u32,
    /// The group that waits.
    pub child: u32,
}

/// Values of the attributes that only the system sets, written for filters and people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemValues(BTreeMap<SystemAttribute, String>);

impl SystemValues {
    /// These values and one more.
    #[must_use]
    pub fn with(mut self, attribute: SystemAttribute, value: impl fmt::Display) -> Self {
        self.0.insert(attribute, value.to_string());
        self
    }

    /// The values by name, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(attribute, value)| (attribute.name(), value.as_str()))
    }
}
