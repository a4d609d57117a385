//! Lists of files to copy before and after a job: `-W stagein=local@host:path`.

use crate::{
    refusal::Refusal,
    text::{split, trimmed, unquoted},
};
use muster_schemas::copies::FileCopy;
use std::fmt;

/// The longest text of a list.
const MOST_BYTES: usize = 65_536;
/// The most files in a list.
const MOST_FILES: usize = 1_000;

/// One file or folder to copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedFile {
    /// Its path where the job runs.
    pub local: String,
    /// The host of the other copy; empty for the node itself.
    pub host: String,
    /// Its path there.
    pub remote: String,
}

impl StagedFile {
    /// The file for the node of the job.
    pub fn copy(&self) -> FileCopy {
        FileCopy { local: self.local.clone(), host: self.host.clone(), remote: self.remote.clone() }
    }
}

/// Reads `local@[host:]path[,local@[host:]path...]`. Commas in paths are quoted, or protected by a backslash.
///
/// # Errors
/// The entry that is wrong, and what is expected.
pub fn parse(option: &str, text: &str) -> Result<Vec<StagedFile>, Refusal> {
    let entries = split(text, ',');
    if text.len() > MOST_BYTES || entries.len() > MOST_FILES {
        return Err(Refusal::value(option, text, format!("at most {MOST_FILES} files are taken")));
    }
    entries.into_iter().map(|entry| one(option, &unquoted(trimmed(entry)))).collect()
}

fn one(option: &str, entry: &str) -> Result<StagedFile, Refusal> {
    let wrong = |why: &str| Err(Refusal::value(option, entry, why));
    let Some((local, other)) = entry.split_once('@') else { return wrong("expected local@host:path") };
    let (host, remote) = other.split_once(':').unwrap_or(("", other));
    if local.is_empty() || remote.is_empty() || (host.is_empty() && other.contains(':')) {
        return wrong("expected local@host:path, none of them empty");
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '@');
    if !host.chars().all(is_plain) {
        return wrong("the host has other characters than letters, digits and `.-_@`");
    }
    // The words become arguments of a copy command.
    if local.starts_with('-') || host.starts_with('-') || remote.starts_with('-') {
        return wrong("a path or host that begins with `-` would be an option of the copy command");
    }
    if entry.contains(char::is_control) {
        return wrong("a control character is in it");
    }
    Ok(StagedFile { local: local.to_owned(), host: host.to_owned(), remote: remote.to_owned() })
}

impl fmt::Display for StagedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.is_empty() {
            true => write!(f, "{}@{}", self.local, self.remote),
            false => write!(f, "{}@{}:{}", self.local, self.host, self.remote),
        }
    }
}
