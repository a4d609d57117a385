//! Limits on the files of a job.

use crate::validate::{bytes, count, invalid, no_nul};
use muster_schemas::{
    command::Refusal,
    copies::{FileCopies, FileCopy},
};

/// The most files in one direction.
const MAX_FILES: usize = 1_000;
/// The longest path, in bytes.
const MAX_PATH_BYTES: usize = 4_096;
/// The longest host, in bytes.
const MAX_HOST_BYTES: usize = 255;

/// Checks the files of a job. Their words become arguments of a copy command, so none begins with `-`.
pub(crate) fn of_job(copies: &FileCopies) -> Result<(), Refusal> {
    for (field, files) in [("copies.before", &copies.before), ("copies.after", &copies.after)] {
        count(field, files.len(), MAX_FILES)?;
        files.iter().try_for_each(|file| one(field, file))?;
    }
    Ok(())
}

fn one(field: &str, file: &FileCopy) -> Result<(), Refusal> {
    for (what, path) in [("local", &file.local), ("remote", &file.remote)] {
        let field = format!("{field}: {what}");
        if path.is_empty() || path.starts_with('-') || path.contains(char::is_control) {
            let expected = "expected a path that does not begin with `-` and has no control character";
            return invalid(format!("{field}: `{}`: {expected}", crate::validate::shown(path)));
        }
        bytes(&field, path.len(), MAX_PATH_BYTES)?;
        no_nul(&field, path)?;
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '@');
    let parts: Vec<&str> = file.host.split('@').collect();
    let is_whole = file.host.is_empty() || parts.len() <= 2 && parts.iter().all(|part| !part.is_empty());
    if !is_whole || parts.iter().any(|part| part.starts_with('-')) || !file.host.chars().all(is_plain) {
        let host = crate::validate::shown(&file.host);
        return invalid(format!("{field}: host: `{host}`: expected letters, digits and `.-_@`"));
    }
    bytes(&format!("{field}: host"), file.host.len(), MAX_HOST_BYTES)
}
