//! Why a description was refused, and where.

use crate::codes::{Code, Refusal};
use std::fmt;

/// The largest description that is accepted, in bytes (HPC-J-47).
pub const MOST_BYTES: usize = 16 << 20;

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
    /// Where the error is, if it has one place.
    pub place: Option<Place>,
    /// The error.
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
