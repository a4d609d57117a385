//! What is specified of a job: read from and written as job XML or JSON (HPC-J-40..48).

pub mod attributes;
pub(crate) mod document;
mod json;
mod terms;
pub mod values;
pub(crate) mod words;
mod xml_read;
pub(crate) mod xml_write;

use crate::codes::{Code, Refusal, Warning};
use attributes::{JobAttributes, TaskAttributes};
use document::Document;
use std::{collections::BTreeMap, fmt};
pub use terms::Terms;
use values::SystemAttribute;

/// The namespace that is written. Any is read (HPC-J-40).
pub const NAMESPACE: &str = "http://schemas.microsoft.com/HPCS2008R2/scheduler/";
/// The version that is written (HPC-J-40).
pub const VERSION: &str = "3.000";
/// The largest description that is read, in bytes (HPC-J-47).
pub const MOST_BYTES: usize = 16 << 20;

/// What is specified of a job. `None` and empty mean "not specified".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobDescription {
    /// The job's own attributes.
    pub attributes: JobAttributes,
    /// Terms for filters; the scheduler does not interpret them (HPC-J-43).
    pub extended_terms: Terms,
    /// Properties for people; the scheduler does not interpret them (HPC-J-43).
    pub custom_properties: Terms,
    /// What a job that was submitted without a description asks for in words of its own dialect, by name (SL-S-21).
    pub request: BTreeMap<String, String>,
    /// Variables that the tasks inherit (HPC-J-44).
    pub environment: BTreeMap<String, String>,
    /// Which groups of tasks wait for which.
    pub dependencies: Vec<GroupDependency>,
    /// The tasks, in their order.
    pub tasks: Vec<TaskDescription>,
}

/// What is specified of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskDescription {
    /// The task's own attributes.
    pub attributes: TaskAttributes,
    /// Terms for programs; the scheduler does not interpret them.
    pub extended_terms: Terms,
    /// Properties for people; the scheduler does not interpret them.
    pub custom_properties: Terms,
    /// Variables of its own, which override those of the job (HPC-J-44).
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

/// Values of the attributes that only the system sets. They are written for filters and people.
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

/// A place in a text, counted from 1 in lines and characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

/// Why a description was refused. Nothing was made or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct DescriptionError {
    /// The kind of refusal: `JobXmlNotValid`, or that of a value (HPC-J-06, J-09, J-10, J-27).
    pub code: Code,
    /// Where it stands, if it stands at one place.
    pub place: Option<Place>,
    /// What is wrong.
    pub text: String,
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(Place { line, column }) => write!(f, "[{}] line {line}, column {column}: {}", self.code, self.text),
            None => write!(f, "[{}] {}", self.code, self.text),
        }
    }
}

impl DescriptionError {
    pub(crate) fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, place: None, text: text.into() }
    }

    pub(crate) fn at(mut self, place: Option<Place>) -> Self {
        self.place = self.place.or(place);
        self
    }
}

impl From<Refusal> for DescriptionError {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code, refusal.text)
    }
}

/// How a description is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Job XML (HPC-J-40).
    Xml,
    /// An object with the same names.
    Json,
}

impl Format {
    /// The format that the bytes seem to have: JSON if the text begins with `{`.
    pub fn of(bytes: &[u8]) -> Self {
        // Byte-order marks and the zeros of UTF-16 are no text.
        let is_text = |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, 0 | 0xef | 0xbb | 0xbf | 0xfe | 0xff);
        match bytes.iter().copied().find(is_text) {
            Some(b'{') => Self::Json,
            _ => Self::Xml,
        }
    }
}

impl JobDescription {
    /// Reads job XML (HPC-J-40..47). System attributes are ignored (HPC-J-45); warnings name what else was.
    ///
    /// # Errors
    /// See [`DescriptionError::code`].
    pub fn read(bytes: &[u8]) -> Result<(Self, Vec<Warning>), DescriptionError> {
        Self::read_as(Format::Xml, bytes)
    }

    /// Reads a description in this format.
    ///
    /// # Errors
    /// See [`DescriptionError::code`].
    pub fn read_as(format: Format, bytes: &[u8]) -> Result<(Self, Vec<Warning>), DescriptionError> {
        Document::read(format, bytes)?.into_description()
    }

    /// The description as job XML (HPC-J-40), with both `Priority` and `ExpandedPriority`, both `RunTime` and
    /// `RuntimeSeconds` (HPC-F-14) and the system's values. What is not specified is absent (HPC-F-20). Reading it
    /// gives an equal description (HPC-J-48).
    pub fn write(&self, system: &SystemValues) -> String {
        xml_write::write(self, system)
    }

    /// The description in this format.
    pub fn write_as(&self, format: Format, system: &SystemValues) -> String {
        match format {
            Format::Xml => self.write(system),
            Format::Json => json::write(self, system),
        }
    }
}
