//! The options of another scheduler, and what they are in terms of `sbatch`.

use crate::{
    getopt::{Step, Table, Takes, next},
    messages::Refusal,
    options::{Command, Given, find},
};

/// An option of another scheduler.
pub(super) struct Foreign {
    letter: char,
    name: &'static str,
    takes: Takes,
}

pub(super) const fn foreign(letter: char, name: &'static str, takes: Takes) -> Foreign {
    Foreign { letter, name, takes }
}

/// The options of another scheduler, for [`crate::getopt`].
struct Options(&'static [Foreign]);

impl Table for Options {
    type Option = &'static Foreign;

    fn of_letter(&self, letter: char) -> Option<Self::Option> {
        self.0.iter().find(|option| option.letter == letter)
    }

    fn of_name(&self, name: &str) -> Option<Self::Option> {
        self.0.iter().find(|option| option.name == name)
    }

    fn beginning(&self, start: &str) -> Vec<(&'static str, Self::Option)> {
        self.0.iter().filter(|option| option.name.starts_with(start)).map(|option| (option.name, option)).collect()
    }

    fn are_same(&self, one: Self::Option, other: Self::Option) -> bool {
        one.letter == other.letter
    }

    fn name(&self, option: Self::Option) -> &'static str {
        option.name
    }

    fn takes(&self, option: Self::Option) -> Takes {
        option.takes
    }
}

/// What the lines of another scheduler ask for.
#[derive(Debug, Default)]
pub(super) struct Translation {
    pub(super) options: Vec<Given>,
    /// Warnings about what has no meaning here.
    pub(super) warnings: Vec<String>,
    pub(super) umask: Option<u32>,
}

impl Translation {
    /// Adds an option of `sbatch`; the last one counts.
    pub(super) fn put(&mut self, name: &str, value: impl Into<String>) {
        self.give(name, Some(value.into()));
    }

    pub(super) fn set(&mut self, name: &str) {
        self.give(name, None);
    }

    fn give(&mut self, name: &str, value: Option<String>) {
        self.options.extend(find(Command::Sbatch, name).map(|option| Given { option, value }));
    }

    pub(super) fn skip(&mut self, marker: &str, what: &str) {
        self.warnings.push(format!("{marker} {what} has no meaning here and is ignored"));
    }

    /// Adds the file of an output stream; `none` discards the output.
    pub(super) fn put_file(&mut self, name: &str, path: &str) {
        self.put(name, if path.eq_ignore_ascii_case("none") { "/dev/null" } else { path });
    }
}

/// Reads options, each of which is passed to `take` with its letter and value.
pub(super) fn read(
    table: &'static [Foreign],
    words: &[String],
    mut take: impl FnMut(char, &str) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (mut at, mut failed) = (0, Ok(()));
    let mut each = |option: &'static Foreign, value: Option<String>| {
        if failed.is_ok() {
            failed = take(option.letter, value.as_deref().unwrap_or_default());
        }
    };
    while next(&Options(table), &words, &mut at, &mut each).map_err(Refusal::ForeignOption)? == Step::Options {}
    failed?;
    match words.get(at) {
        Some(word) => Err(Refusal::ForeignWord((*word).to_owned())),
        None => Ok(()),
    }
}

/// The number at the beginning of a text.
pub(super) fn leading_number(text: &str) -> Option<u64> {
    let digits = text.trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}
