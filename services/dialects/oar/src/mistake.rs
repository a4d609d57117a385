//! A mistake in a text, and its place there.

use std::fmt;

/// A mistake in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The place of the first wrong character, in characters from 1. The end of the text is one place after the last.
    pub column: usize,
    /// The mistake, and the expected form.
    pub message: String,
}

impl Mistake {
    /// A mistake at a place in bytes of the text.
    pub fn at(text: &str, byte: usize, message: impl Into<String>) -> Self {
        let column = text.char_indices().take_while(|(place, _)| *place < byte).count() + 1;
        Self { column, message: message.into() }
    }

    /// The same mistake in a text in which the wrong one begins this many characters after the beginning.
    #[must_use]
    pub fn moved(self, characters: usize) -> Self {
        Self { column: self.column + characters, ..self }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.message)
    }
}

impl std::error::Error for Mistake {}
