//! The specification of a job, read from and written as job XML or JSON (HPC-J-40..48).

pub mod attributes;
pub(crate) mod document;
mod error;
mod json;
mod parts;
mod terms;
pub mod values;
pub(crate) mod words;
mod xml_read;
pub(crate) mod xml_write;

use crate::codes::Warning;
use document::Document;
pub use error::{DescriptionError, MOST_BYTES, Place};
pub use parts::{GroupDependency, JobDescription, NAMESPACE, SystemValues, TaskDescription, VERSION};
pub use terms::Terms;

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
        // Byte-order marks and the zeros of UTF-16 are not text.
        let is_text = |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, 0 | 0xef | 0xbb | 0xbf | 0xfe | 0xff);
        match bytes.iter().copied().find(is_text) {
            Some(b'{') => Self::Json,
            _ => Self::Xml,
        }
    }
}

impl JobDescription {
    /// Reads job XML (HPC-J-40..47). System attributes are ignored (HPC-J-45); warnings name anything else that is.
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
        read(format, bytes)?.into_description()
    }

    /// The description as job XML (HPC-J-40), with both `Priority` and `ExpandedPriority`, both `RunTime` and
    /// `RuntimeSeconds` (HPC-F-14) and the system's values. Anything not specified is absent (HPC-F-20). Reading it
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

/// Reads a description as the file has it.
pub(crate) fn read(format: Format, bytes: &[u8]) -> Result<Document, DescriptionError> {
    match format {
        Format::Xml => xml_read::read(bytes),
        Format::Json => json::read(bytes),
    }
}
