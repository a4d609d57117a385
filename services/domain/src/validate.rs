//! Limits on values from any sender. Each refusal names the field, the value and the limit.

use muster_schemas::command::{Refusal, RefusalCode};

/// The greatest length of any name, in bytes.
pub const MAX_NAME_BYTES: usize = 1_024;

/// The greatest length of free text, such as a reason, in bytes.
pub const MAX_TEXT_BYTES: usize = 16 << 10;

/// The greatest length of a path, in bytes.
pub const MAX_PATH_BYTES: usize = 4_096;

/// The greatest number of jobs in a submission.
pub const MAX_JOBS: usize = 100_000;

/// The greatest number of components of a job.
pub const MAX_COMPONENTS: usize = 1_000;

/// The greatest number of tasks of an array.
pub const MAX_TASKS: u64 = 10_000_000;

/// The greatest size of a script, in bytes.
pub const MAX_SCRIPT_BYTES: usize = 4 << 20;

/// The greatest size of everything that a job carries, in bytes: its submission is one record, and must fit into a
/// message of the bus (8 MB).
pub const MAX_JOB_BYTES: usize = 6 << 20;

/// The greatest size of all arguments of a command, in bytes.
pub const MAX_ARGUMENT_BYTES: usize = 1 << 20;

/// The greatest size of an environment, names and values, in bytes.
pub const MAX_ENVIRONMENT_BYTES: usize = 1 << 20;

/// The greatest size of all attributes of a job, names and values, in bytes.
pub const MAX_ATTRIBUTE_BYTES: usize = 1 << 20;

/// The greatest number of alternatives of a component, requests of an alternative, levels of a path, notifications of a
/// job and the like.
pub const MAX_LIST: usize = 1_000;

/// The greatest number of nodes named in a request.
pub const MAX_NODE_NAMES: usize = 100_000;

/// The greatest number of conditions in the dependencies of a component.
pub const MAX_DEPENDENCIES: usize = 10_000;

/// The greatest count of nodes, tasks, cores and the like.
pub const MAX_COUNT: u32 = 10_000_000;

/// The longest walltime: a hundred years.
pub const MAX_SECONDS: u64 = 100 * 366 * 86_400;

/// The greatest amount of memory in a request: an exbibyte.
pub const MAX_MEMORY_BYTES: u64 = 1 << 60;

/// The greatest nesting depth of the filter of a request.
pub const MAX_FILTER_DEPTH: usize = 50;

/// The greatest number of cores of a node.
pub const MAX_NODE_CORES: u32 = 65_536;

pub(crate) fn invalid<T>(message: String) -> Result<T, Refusal> {
    Err(Refusal::new(RefusalCode::Invalid, message))
}

/// A value as shown in messages: truncated, and without control characters.
pub(crate) fn shown(value: &str) -> String {
    let shown: String = value.chars().take(80).map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect();
    if value.chars().nth(80).is_some() { shown + "..." } else { shown }
}

pub(crate) fn bytes(field: &str, found: usize, most: usize) -> Result<(), Refusal> {
    if found > most { invalid(format!("{field}: {found} bytes, at most {most} are allowed")) } else { Ok(()) }
}

pub(crate) fn count(field: &str, found: usize, most: usize) -> Result<(), Refusal> {
    if found > most { invalid(format!("{field}: {found} given, at most {most} are allowed")) } else { Ok(()) }
}

pub(crate) fn number(field: &str, found: u64, least: u64, most: u64) -> Result<(), Refusal> {
    if (least..=most).contains(&found) {
        Ok(())
    } else {
        invalid(format!("{field}: {found} is not between {least} and {most}"))
    }
}

pub(crate) fn no_nul(field: &str, value: &str) -> Result<(), Refusal> {
    match value.find('\0') {
        Some(at) => invalid(format!("{field}: has a NUL byte at position {at}")),
        None => Ok(()),
    }
}

/// Text for people.
pub(crate) fn text(field: &str, value: &str) -> Result<(), Refusal> {
    bytes(field, value.len(), MAX_TEXT_BYTES)?;
    no_nul(field, value)
}

/// A name: no control characters, not too long. It may be empty.
pub(crate) fn label(field: &str, value: &str) -> Result<(), Refusal> {
    bytes(field, value.len(), MAX_NAME_BYTES)?;
    match value.chars().find(|char| char.is_control()) {
        Some(char) => invalid(format!("{field}: `{}` has the control character U+{:04X}", shown(value), char as u32)),
        None => Ok(()),
    }
}

/// An identifying name: like a label, and not empty.
pub(crate) fn name(field: &str, value: &str) -> Result<(), Refusal> {
    if value.is_empty() {
        return invalid(format!("{field}: is empty"));
    }
    label(field, value)
}

/// A name used in lists on command lines: like a name, without blanks, commas and slashes.
pub(crate) fn identifier(field: &str, value: &str) -> Result<(), Refusal> {
    name(field, value)?;
    match value.chars().find(|char| char.is_whitespace() || matches!(char, ',' | '/')) {
        Some(char) => invalid(format!("{field}: `{}` has the character `{char}`", shown(value))),
        None => Ok(()),
    }
}

/// The number of a signal.
pub(crate) fn signal(field: &str, value: u8) -> Result<(), Refusal> {
    number(field, u64::from(value), 1, 64)
}

pub(crate) fn path(field: &str, value: &str) -> Result<(), Refusal> {
    bytes(field, value.len(), MAX_PATH_BYTES)?;
    no_nul(field, value)
}

/// The image of a container: a runtime cannot take it for an option.
pub(crate) fn image(field: &str, value: &str) -> Result<(), Refusal> {
    if value.is_empty() {
        return invalid(format!("{field}: is empty"));
    }
    if value.starts_with('-') {
        return invalid(format!("{field}: `{}` begins with `-`, as no image does", shown(value)));
    }
    bytes(field, value.len(), MAX_PATH_BYTES)?;
    match value.chars().find(|char| char.is_control()) {
        Some(char) => invalid(format!("{field}: `{}` has the control character U+{:04X}", shown(value), char as u32)),
        None => Ok(()),
    }
}

pub(crate) fn optional<T: ?Sized, S: AsRef<T>>(
    field: &str,
    value: Option<&S>,
    check: impl FnOnce(&str, &T) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    value.map_or(Ok(()), |value| check(field, value.as_ref()))
}

/// A walltime in seconds.
pub(crate) fn walltime(seconds: u64) -> Result<(), Refusal> {
    number("walltime_seconds", seconds, 1, MAX_SECONDS)
}
