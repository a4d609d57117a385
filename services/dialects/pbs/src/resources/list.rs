//! The list of one `-l`: `name=value,name=value`.

use crate::{
    refusal::{Refusal, shown},
    text::{has_open_quote, is_name, split, trimmed, unquoted},
};

/// The longest text of one `-l`. Servers of the family stop at 64 KiB too.
pub const MOST_BYTES: usize = 65_536;

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The resource's name.
    pub name: String,
    /// Its value as written, with quotes; empty if none was given.
    pub value: String,
}

impl Resource {
    /// Its value without quotes.
    pub fn plain(&self) -> String {
        unquoted(&self.value)
    }
}

/// Reads the value of a `-l`. The values are left as they are.
///
/// # Errors
/// A text that is too long, an unclosed quote, or a word that is no name.
pub fn parse(text: &str) -> Result<Vec<Resource>, Refusal> {
    if text.len() > MOST_BYTES {
        return Err(Refusal::value("-l", text, format!("at most {MOST_BYTES} bytes are taken")));
    }
    if has_open_quote(text) {
        return Err(Refusal::value("-l", text, "a quote is not closed"));
    }
    let entries = split(text, ',').into_iter().map(trimmed);
    entries.map(|entry| one(entry, text)).collect()
}

fn one(entry: &str, all: &str) -> Result<Resource, Refusal> {
    let (name, value) = match entry.split_once('=') {
        None => (entry, ""),
        Some((name, value)) if !value.trim().is_empty() => (name.trim_end(), value.trim_start()),
        Some((name, _)) => return Err(Refusal::value("-l", entry, format!("`{}` has no value", shown(name)))),
    };
    if name.is_empty() {
        return Err(Refusal::value("-l", all, "a resource has no name"));
    }
    if !is_name(name) {
        return Err(Refusal::value("-l", name, "this is not the name of a resource"));
    }
    Ok(Resource { name: name.to_owned(), value: value.to_owned() })
}
