//! Mistakes and where they are.

use std::fmt;

/// A mistake in a program or configuration file, or what ended a cycle. Shown as `FILE:LINE: message (token 'T')`
/// (PBS-X-01).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file's name as the caller gave it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The place of the token in its line, in characters from 1; 0 for run-time faults, and if there is no token.
    pub column: u32,
    /// The mistake, and the text that was expected.
    pub message: String,
    /// The text at which it was seen. Run-time faults have none.
    pub token: Option<String>,
}

impl Fault {
    /// `FILE:LINE: column N: message (token 'T')`, as people read it: with the place of the token in its line.
    pub fn located(&self) -> String {
        let column = match self.column {
            0 => String::new(),
            column => format!("column {column}: "),
        };
        format!("{}:{}: {column}{}{}", self.file, self.line, self.message, self.shown_token())
    }

    fn shown_token(&self) -> String {
        self.token.as_ref().map(|token| format!(" (token '{token}')")).unwrap_or_default()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}{}", self.file, self.line, self.message, self.shown_token())
    }
}

/// Where a token begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// The line, from 1.
    pub(crate) line: u32,
    /// The character in the line, from 1.
    pub(crate) column: u32,
}

impl Default for Position {
    fn default() -> Self {
        Self::START
    }
}

impl Position {
    /// Where a text begins.
    pub(crate) const START: Self = Self { line: 1, column: 1 };

    /// The place behind a text that begins here.
    pub(crate) fn after(self, text: &str) -> Self {
        let count = |letters: usize| u32::try_from(letters).unwrap_or(u32::MAX);
        let lines = count(text.bytes().filter(|byte| *byte == b'\n').count());
        let (first, last) = text.rsplit_once('\n').map_or((self.column, text), |(_, last)| (1, last));
        Self { line: self.line.saturating_add(lines), column: first.saturating_add(count(last.chars().count())) }
    }
}

impl std::error::Error for Fault {}

/// Characters of a token that messages show.
const SHOWN: usize = 80;

/// Collects the mistakes of a file, each of them once.
#[derive(Debug)]
pub(crate) struct Faults {
    file: String,
    list: Vec<Fault>,
    /// How often a mistake was told, also one that was told before.
    told: usize,
}

impl Faults {
    /// After so many repetitions nothing new is likely to come.
    const REPETITIONS: usize = 5000;

    /// After this many mistakes, the rest is likely to be their consequence.
    pub(crate) const MAXIMUM: usize = 200;

    pub(crate) fn new(file: &str) -> Self {
        Self { file: file.to_owned(), list: Vec::new(), told: 0 }
    }

    pub(crate) fn add(&mut self, at: Position, token: &str, message: impl Into<String>) {
        if !self.is_full() {
            self.told += 1;
            let column = if token.is_empty() { 0 } else { at.column };
            let token = Some(token.chars().map(plain).take(SHOWN).collect());
            let fault = Fault { file: self.file.clone(), line: at.line, column, message: message.into(), token };
            let is_same = |known: &Fault| {
                (known.line, &known.message, &known.token) == (fault.line, &fault.message, &fault.token)
            };
            if !self.list.iter().any(is_same) {
                self.list.push(fault);
            }
        }
    }

    /// Whether further mistakes are not kept.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= Self::MAXIMUM || self.told >= Self::REPETITIONS
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All mistakes in the order of their places.
    pub(crate) fn into_list(mut self) -> Vec<Fault> {
        self.list.sort_by_key(|fault| (fault.line, fault.column));
        self.list
    }
}

/// Control characters would change what a terminal shows.
fn plain(character: char) -> char {
    if character.is_control() { ' ' } else { character }
}
