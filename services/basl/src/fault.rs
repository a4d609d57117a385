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
    /// The mistake, and the text that was expected.
    pub message: String,
    /// The text at which it was seen. Run-time faults have none.
    pub token: Option<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.file, self.line, self.message)?;
        match &self.token {
            Some(token) => write!(formatter, " (token '{token}')"),
            None => Ok(()),
        }
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

    pub(crate) fn add(&mut self, line: u32, token: &str, message: impl Into<String>) {
        if !self.is_full() {
            self.told += 1;
            let token = Some(token.chars().map(plain).take(SHOWN).collect());
            let fault = Fault { file: self.file.clone(), line, message: message.into(), token };
            if !self.list.contains(&fault) {
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

    /// All mistakes in the order of the lines.
    pub(crate) fn into_list(mut self) -> Vec<Fault> {
        self.list.sort_by_key(|fault| fault.line);
        self.list
    }
}

/// Control characters would change what a terminal shows.
fn plain(character: char) -> char {
    if character.is_control() { ' ' } else { character }
}
