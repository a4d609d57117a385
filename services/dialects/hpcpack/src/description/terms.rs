//! Terms: names with values that the scheduler passes along without interpreting them (HPC-J-43).

use super::attributes::{TERM_LENGTHS, check_characters, check_length};
use crate::codes::Refusal;
use std::collections::BTreeMap;

/// Names with values. Names ignore case; each keeps the spelling and value given last (HPC-J-43).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms(BTreeMap<String, (String, String)>);

impl Terms {
    /// Sets a term; name and value are trimmed.
    ///
    /// # Errors
    /// A name or value that is too long (HPC-J-27) or that XML cannot hold; nothing is changed then.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Refusal> {
        let (name, value) = (name.trim(), value.trim());
        check_length(&format!("the name of the term `{}`", shorten(name)), name, TERM_LENGTHS.0)?;
        check_length(&format!("the value of the term `{}`", shorten(name)), value, TERM_LENGTHS.1)?;
        check_characters("the name of a term", name)?;
        check_characters("the value of a term", value)?;
        self.0.insert(name.to_lowercase(), (name.to_owned(), value.to_owned()));
        Ok(())
    }

    /// The value of a term.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(&name.to_lowercase()).map(|(_, value)| value.as_str())
    }

    /// Removes a term.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(&name.to_lowercase());
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.values().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn shorten(text: &str) -> String {
    muster_schemas::policy::words::shorten(text)
}
