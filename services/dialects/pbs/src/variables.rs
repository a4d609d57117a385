//! The variables of `-v`: `NAME,NAME=value,NAME="a,b"`.

use crate::{
    refusal::Refusal,
    text::{has_open_quote, split, trimmed, unquoted},
};

/// The longest text of `-v`.
const MOST_BYTES: usize = 1 << 20;

/// A variable for the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value; `None` for that of the submitter's environment.
    pub value: Option<String>,
}

/// Reads a list of variables. Commas in values are quoted, or protected by a backslash.
///
/// # Errors
/// An entry without a name, or an unclosed quote.
pub fn parse(text: &str) -> Result<Vec<Variable>, Refusal> {
    if text.len() > MOST_BYTES {
        return Err(Refusal::value("-v", text, format!("at most {MOST_BYTES} bytes are taken")));
    }
    if has_open_quote(text) {
        return Err(Refusal::value("-v", text, "a quote is not closed"));
    }
    let entries = split(text, ',').into_iter().map(trimmed).filter(|entry| !entry.is_empty());
    entries.map(one).collect()
}

fn one(entry: &str) -> Result<Variable, Refusal> {
    let (name, value) = match entry.split_once('=') {
        None => (entry, None),
        Some((name, value)) => (name.trim(), Some(unquoted(value))),
    };
    let name = unquoted(name);
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == '\0') {
        return Err(Refusal::value("-v", entry, "expected NAME or NAME=value"));
    }
    if value.as_ref().is_some_and(|value| value.contains('\0')) {
        return Err(Refusal::value("-v", entry, "a NUL byte is in it"));
    }
    Ok(Variable { name, value })
}
