//! The lines and words of a policy file.

use std::borrow::Cow;

/// The largest policy file, in bytes: a resource group file with some 30,000 users.
pub const MOST_BYTES: usize = 1 << 20;

/// The maximum number of lines in a policy file. It bounds the number of findings, too.
pub const MOST_LINES: usize = 50_000;

/// A policy file in the hands of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name without the folder, such as `sched_config`.
    pub name: String,
    /// Its contents. Bytes that are not UTF-8 are accepted in comments only.
    pub bytes: Vec<u8>,
}

impl Source {
    /// A file with this name and text.
    pub fn new(name: &str, text: &str) -> Self {
        Self { name: name.to_owned(), bytes: text.as_bytes().to_vec() }
    }
}

/// A line with its number, from 1.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The number of the line.
    pub number: u32,
    /// Its text without the line break. Bytes that are not UTF-8 are replaced by U+FFFD.
    pub text: Cow<'a, str>,
}

/// A word of a file and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// The word.
    pub text: &'a str,
    /// The number of its line, from 1.
    pub line: u32,
    /// The place of its first character in the line, from 1.
    pub column: u32,
}

impl<'a> Word<'a> {
    /// A word that stands for a file as a whole, at its first line.
    pub fn of_file(text: &'a str) -> Self {
        Self { text, line: 1, column: 1 }
    }

    /// Whether it is this word, in any case.
    pub fn is(&self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }

    /// Whether it contains bytes that are not UTF-8.
    pub fn is_garbled(&self) -> bool {
        self.text.contains(char::REPLACEMENT_CHARACTER)
    }
}

/// The lines of a file. A byte order mark at the beginning is left out.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    bytes.split(|byte| *byte == b'\n').zip(1..).map(|(line, number)| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Line { number, text: String::from_utf8_lossy(line) }
    })
}

/// Whether a character separates words.
pub fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\x0b' | '\x0c')
}

/// Whether a line has nothing to read: it is blank, or begins with `#` or `*`.
pub fn is_comment(line: &Line) -> bool {
    let text = line.text.trim_start_matches(is_blank);
    text.is_empty() || text.starts_with(['#', '*'])
}

/// The words of a line, up to a word that begins with `#`.
pub fn words<'a>(line: &'a Line) -> Vec<Word<'a>> {
    let mut rest = Rest::of(line);
    let mut words = Vec::new();
    loop {
        rest.skip(is_blank);
        if rest.text.is_empty() || rest.text.starts_with('#') {
            return words;
        }
        words.push(rest.take_until(is_blank));
    }
}

/// An entry of a file in which the name may end with a colon (PBS-F-01).
#[derive(Debug)]
pub struct Entry<'a> {
    /// The name in front of the colon or blank.
    pub name: Word<'a>,
    /// The value, without its quotes.
    pub value: Option<Word<'a>>,
    /// Whether the value begins with a quote that never ends.
    pub is_open: bool,
    /// The words behind the value, without a comment.
    pub rest: Vec<Word<'a>>,
}

/// The entry in a line that is not a comment.
pub fn entry<'a>(line: &'a Line) -> Entry<'a> {
    let mut rest = Rest::of(line);
    rest.skip(is_blank);
    let name = rest.take_until(|letter| letter == ':' || is_blank(letter));
    rest.skip(|letter| letter == ':' || is_blank(letter));
    let (value, is_open) = rest.take_value();
    let mut words = Vec::new();
    loop {
        rest.skip(is_blank);
        if rest.text.is_empty() || rest.text.starts_with('#') {
            return Entry { name, value, is_open, rest: words };
        }
        words.push(rest.take_until(is_blank));
    }
}

/// The rest of a line.
struct Rest<'a> {
    text: &'a str,
    line: u32,
    column: u32,
}

impl<'a> Rest<'a> {
    fn of(line: &'a Line) -> Self {
        Self { text: &line.text, line: line.number, column: 1 }
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        let _ = self.take_until(|letter| !is_skipped(letter));
    }

    fn take_until(&mut self, is_end: impl Fn(char) -> bool) -> Word<'a> {
        let end = self.text.find(is_end).unwrap_or(self.text.len());
        let (text, rest) = self.text.split_at(end);
        let word = Word { text, line: self.line, column: self.column };
        self.text = rest;
        self.column = self.column.saturating_add(u32::try_from(text.chars().count()).unwrap_or(u32::MAX));
        word
    }

    /// The value of an entry, and whether its quote is open.
    fn take_value(&mut self) -> (Option<Word<'a>>, bool) {
        if self.text.is_empty() || self.text.starts_with('#') {
            return (None, false);
        }
        if !self.text.starts_with('"') {
            return (Some(self.take_until(is_blank)), false);
        }
        self.text = &self.text[1..];
        self.column += 1;
        let value = self.take_until(|letter| letter == '"');
        let is_open = self.text.is_empty();
        if !is_open {
            self.text = &self.text[1..];
            self.column += 1;
        }
        (Some(value), is_open)
    }
}
