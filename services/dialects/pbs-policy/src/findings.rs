//! Mistakes in a policy file and their places (PBS-F-04).

use crate::lines::Word;
use std::fmt;

/// The maximum number of characters of a word that a message shows.
const SHOWN_LETTERS: usize = 60;

/// The number of known words with which unknown ones in a file are compared. The first mistakes of a file get
/// suggestions; for thousands of them, among thousands of names, they would take minutes.
const MOST_COMPARISONS: usize = 200_000;

/// The maximum number of edits between an unknown word and the one that is suggested.
const MOST_EDITS: usize = 2;

/// The longest word, in bytes, that is compared with the known ones.
const LONGEST_COMPARED: usize = 64;

/// A mistake, or something strange, in a policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the file, without its folder.
    pub file: String,
    /// The number of the line, from 1; 0 if the finding is about the file as a whole.
    pub line: u32,
    /// The place of the word in the line, in characters from 1; 0 if the finding is about the file as a whole.
    pub column: u32,
    /// What was found, and what was expected.
    pub message: String,
    /// The word in question; empty if there is none.
    pub token: String,
}

impl Finding {
    /// `FILE:LINE: column N: message (token 'T')`, as people read it: with the place of the word in its line.
    pub fn located(&self) -> String {
        Located(self, true).to_string()
    }
}

impl fmt::Display for Finding {
    /// `FILE:LINE: message (token 'T')`. Control characters are escaped, and long words are cut.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Located(self, false).fmt(f)
    }
}

/// A finding, with its column or without.
struct Located<'f>(&'f Finding, bool);

impl fmt::Display for Located<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(finding, has_column) = self;
        finding.write(f, *has_column)
    }
}

impl Finding {
    fn write(&self, f: &mut fmt::Formatter<'_>, has_column: bool) -> fmt::Result {
        write_escaped(f, &self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        f.write_str(": ")?;
        if has_column && self.column > 0 && !self.token.is_empty() {
            write!(f, "column {}: ", self.column)?;
        }
        write_escaped(f, &self.message)?;
        if !self.token.is_empty() {
            f.write_str(" (token '")?;
            write_escaped(f, &shortened(&self.token))?;
            f.write_str("')")?;
        }
        Ok(())
    }
}

/// Writes a text so that it cannot control a terminal.
fn write_escaped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str(&escaped(text))
}

/// A text whose control characters, and those that are invisible or turn the direction of writing, are escaped.
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        let is_invisible =
            matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if letter.is_control() || is_invisible { shown.extend(letter.escape_default()) } else { shown.push(letter) }
    }
    shown
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_LETTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// The findings in one file.
#[derive(Debug)]
pub struct Findings {
    file: String,
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
    comparisons_left: usize,
}

impl Findings {
    /// No findings in the file with this name.
    pub fn new(file: &str) -> Self {
        Self { file: file.to_owned(), errors: Vec::new(), warnings: Vec::new(), comparisons_left: MOST_COMPARISONS }
    }

    /// Adds an error at a word. The message does not repeat the word.
    pub fn error(&mut self, word: Word, message: impl Into<String>) {
        let finding = self.finding(word, message.into());
        self.errors.push(finding);
    }

    /// Adds a warning at a word. The message does not repeat the word.
    pub fn warning(&mut self, word: Word, message: impl Into<String>) {
        let finding = self.finding(word, message.into());
        self.warnings.push(finding);
    }

    /// Adds a warning about the file as a whole, such as that it does not exist.
    pub fn about_file(&mut self, message: &str) {
        let (file, message) = (self.file.clone(), message.to_owned());
        self.warnings.push(Finding { file, line: 0, column: 0, message, token: String::new() });
    }

    /// Adds an error at a word, and suggests the nearest of the words that are known (PBS-F-04).
    pub fn unknown<'k>(&mut self, word: Word, message: &str, known: impl IntoIterator<Item = &'k str>) {
        let mut left = self.comparisons_left;
        let known = known.into_iter().take(left).inspect(|_| left -= 1);
        let nearest = nearest(word.text, known);
        self.comparisons_left = left;
        match nearest {
            Some(nearest) => self.error(word, format!("{message}; is '{nearest}' meant?")),
            None => self.error(word, message),
        }
    }

    /// The errors and the warnings, each in the order of their lines.
    pub fn into_sorted(mut self) -> (Vec<Finding>, Vec<Finding>) {
        self.errors.sort_by_key(|finding| (finding.line, finding.column));
        self.warnings.sort_by_key(|finding| (finding.line, finding.column));
        (self.errors, self.warnings)
    }

    fn finding(&self, word: Word, message: String) -> Finding {
        // A longer word is cut when it is shown; one character more says that it was.
        let token = word.text.chars().take(SHOWN_LETTERS + 1).collect();
        Finding { file: self.file.clone(), line: word.line, column: word.column, message, token }
    }
}

/// The first of the known words that are nearest to a word: a maximum of two edits away, not counting case.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > LONGEST_COMPARED {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let letters = word.chars().count();
    let is_near = |known: &&str| known.chars().count().abs_diff(letters) <= MOST_EDITS;
    let distances = known.into_iter().filter(is_near).map(|known| {
        let edits = strsim::osa_distance(&word, &known.to_ascii_lowercase());
        (edits, known)
    });
    // If every letter differs, the words have nothing in common.
    let close = distances.filter(|(edits, known)| *edits <= MOST_EDITS && *edits < letters.max(known.chars().count()));
    close.min_by_key(|(edits, _)| *edits).map(|(_, known)| known)
}
