//! The chunks of `select=2:ncpus=4:mem=8gb+1:ncpus=8`.

use crate::{
    refusal::Refusal,
    text::{decimal, is_name, quoted, split, trimmed, unquoted},
};
use std::fmt;

/// The most kinds of chunks in one request.
const MOST_KINDS: usize = 1_000;
/// The most chunks in one request.
const MOST_CHUNKS: u64 = 1_000_000;

/// A number of equal chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Their number, at least 1.
    pub count: u32,
    /// The resources of each, in order, without quotes.
    pub resources: Vec<(String, String)>,
}

impl Chunk {
    /// The value of a resource; the first one counts.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.resources.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// All chunks of a request, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select(pub Vec<Chunk>);

impl Select {
    /// Reads `[N:]name=value[:name=value...][+...]`; a number alone is that many chunks without resources.
    ///
    /// # Errors
    /// The part that is wrong, and what is expected.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let parts = split(text, '+');
        if parts.len() > MOST_KINDS {
            return Err(Refusal::value("select", text, format!("at most {MOST_KINDS} kinds of chunks are taken")));
        }
        let chunks: Vec<Chunk> = parts.into_iter().map(chunk).collect::<Result<_, _>>()?;
        let select = Self(chunks);
        match select.count() {
            count if count > MOST_CHUNKS => {
                Err(Refusal::value("select", text, format!("at most {MOST_CHUNKS} chunks are taken")))
            }
            _ => Ok(select),
        }
    }

    /// The number of chunks.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|chunk| u64::from(chunk.count)).sum()
    }
}

fn chunk(text: &str) -> Result<Chunk, Refusal> {
    let wrong = |word: &str, why: &str| Err(Refusal::value("select", word, why));
    if text.trim().is_empty() {
        return wrong(text, "a chunk is a number, resources such as ncpus=4, or both");
    }
    let mut parts = split(text, ':').into_iter().map(trimmed).peekable();
    let count = match parts.peek() {
        Some(first) if first.starts_with(|c: char| c.is_ascii_digit()) => {
            let count = decimal::<u32>(first).filter(|count| *count > 0);
            let Some(count) = count else { return wrong(first, "the number of chunks is at least 1") };
            parts.next();
            count
        }
        _ => 1,
    };
    let mut resources: Vec<(String, String)> = Vec::new();
    for part in parts {
        let Some((name, value)) = part.split_once('=') else {
            return wrong(part, "a chunk has resources such as ncpus=4");
        };
        if !is_name(name) {
            return wrong(name, "this is not the name of a resource");
        }
        let value = unquoted(value);
        if value.is_empty() {
            return wrong(part, "the resource has no value");
        }
        if resources.iter().any(|(known, _)| known == name) {
            return wrong(name, "a chunk has each resource once");
        }
        resources.push((name.to_owned(), value));
    }
    Ok(Chunk { count, resources })
}

impl fmt::Display for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.count)?;
        self.resources.iter().try_for_each(|(name, value)| write!(f, ":{name}={}", quoted(value, &[':', '+', ','])))
    }
}

impl fmt::Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, chunk) in self.0.iter().enumerate() {
            write!(f, "{}{chunk}", if place > 0 { "+" } else { "" })?;
        }
        Ok(())
    }
}
