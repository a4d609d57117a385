//! Limits on filters and descriptions.

use crate::validate::{bytes, invalid, name, path, shown};
use muster_schemas::{
    command::Refusal,
    filter::{FilterSpec, JobDocument},
};

/// The greatest size of a stored description, in bytes: it is one record, and must fit into a message of the bus (8
/// MB).
const MAX_DOCUMENT_BYTES: usize = 6 << 20;

/// A job description as its author wrote it.
pub(crate) fn document(document: &JobDocument) -> Result<(), Refusal> {
    if !matches!(document.format.as_str(), "xml" | "json") {
        return invalid(format!("document.format: `{}` is neither `xml` nor `json`", shown(&document.format)));
    }
    bytes("document: as it is kept, compressed if it is so", document.bytes.len(), MAX_DOCUMENT_BYTES)
}

/// A filter. Its path must be absolute; only runners check whether the program exists (HPC-F-72).
pub(crate) fn filter_spec(field: &str, spec: &FilterSpec) -> Result<(), Refusal> {
    name(&format!("{field}: a filter's name"), &spec.name)?;
    let named = || format!("{field}: filter `{}`: path", shown(&spec.name));
    path(&named(), &spec.path)?;
    if spec.path.starts_with('/') {
        return Ok(());
    }
    invalid(format!("{}: `{}` does not begin with `/`", named(), shown(&spec.path)))
}
