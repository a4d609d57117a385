//! Command lines with options and words in any order (SL-C-01, SL-C-02).

use super::Failure;
pub use crate::getopt::Takes;
use crate::getopt::{self, Step};

/// An option: its letter, the key that it is reported under, its name, its value. Several names may have one key.
pub struct Opt {
    /// Its letter.
    pub letter: Option<char>,
    /// The key that it is reported under.
    pub key: &'static str,
    /// Its long name.
    pub name: &'static str,
    /// Its value.
    pub takes: Takes,
}

/// An option whose key is its name.
pub const fn opt(letter: Option<char>, name: &'static str, takes: Takes) -> Opt {
    Opt { letter, key: name, name, takes }
}

/// Another name for an option.
pub const fn alias(key: &'static str, name: &'static str, takes: Takes) -> Opt {
    Opt { letter: None, key, name, takes }
}

/// A command line.
#[derive(Debug, Default)]
pub struct Line {
    /// The options in order, each with its value.
    pub options: Vec<(&'static str, Option<String>)>,
    /// Words that are not options.
    pub words: Vec<String>,
}

impl Line {
    /// Whether an option was given.
    pub fn has(&self, key: &str) -> bool {
        self.options.iter().any(|(known, _)| *known == key)
    }

    /// How often an option was given.
    pub fn count(&self, key: &str) -> usize {
        self.options.iter().filter(|(known, _)| *known == key).count()
    }

    /// The value of an option; the last one counts.
    pub fn value(&self, key: &str) -> Option<&str> {
        let (_, value) = self.options.iter().rev().find(|(known, _)| *known == key)?;
        Some(value.as_deref().unwrap_or_default())
    }

    /// The values of an option that can be repeated, as one comma-separated list.
    pub fn list(&self, key: &str) -> Option<String> {
        let values = self.options.iter().filter(|(known, _)| *known == key);
        let values: Vec<&str> = values.map(|(_, value)| value.as_deref().unwrap_or_default()).collect();
        if values.is_empty() { None } else { Some(values.join(",")) }
    }
}

/// Reads a command line; `command` is the name in messages.
///
/// # Errors
/// An option that is unknown, ambiguous, lacks its value or has a superfluous one (SL-C-02).
pub fn parse(command: &str, table: &'static [Opt], arguments: &[impl AsRef<str>]) -> Result<Line, Failure> {
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let (mut line, mut at) = (Line::default(), 0);
    let options = &mut line.options;
    let mut take = |option: &'static Opt, value| options.push((option.key, value));
    loop {
        match getopt::next(&Own(table), &arguments, &mut at, &mut take) {
            Ok(Step::Options) => {}
            Ok(Step::Word) => {
                line.words.push(arguments[at].to_owned());
                at += 1;
            }
            Ok(Step::Separator) => {
                line.words.extend(arguments[at..].iter().map(|word| (*word).to_owned()));
                return Ok(line);
            }
            Ok(Step::End) => return Ok(line),
            Err(wrong) => return Err(Failure { lines: wrong.lines(command), code: 1 }),
        }
    }
}

/// The options of a command.
struct Own(&'static [Opt]);

impl getopt::Table for Own {
    type Option = &'static Opt;

    fn of_letter(&self, letter: char) -> Option<Self::Option> {
        self.0.iter().find(|option| option.letter == Some(letter))
    }

    fn of_name(&self, name: &str) -> Option<Self::Option> {
        self.0.iter().find(|option| option.name == name)
    }

    fn beginning(&self, start: &str) -> Vec<(&'static str, Self::Option)> {
        let fitting = self.0.iter().filter(|option| option.name.starts_with(start));
        fitting.map(|option| (option.name, option)).collect()
    }

    fn are_same(&self, one: Self::Option, other: Self::Option) -> bool {
        one.key == other.key
    }

    fn name(&self, option: Self::Option) -> &'static str {
        option.name
    }

    fn takes(&self, option: Self::Option) -> Takes {
        option.takes
    }
}

/// The output of `--help`: the usage and the options (SL-C-01).
pub fn help(command: &str, operands: &str, table: &[Opt]) -> String {
    let mut text = format!("Usage: {command} [OPTIONS...] {operands}").trim_end().to_owned();
    text.push('\n');
    let is_help = |option: &&Opt| matches!(option.name, "help" | "usage" | "version");
    let own = || table.iter().filter(|option| option.key == option.name);
    text.extend(own().filter(|option| !is_help(option)).map(help_line));
    text.push_str("\n\nHelp options:");
    text.extend(own().filter(is_help).map(help_line));
    text.push('\n');
    text
}

fn help_line(option: &Opt) -> String {
    let short = option.letter.map_or_else(|| "    ".to_owned(), |letter| format!("-{letter}, "));
    format!("\n  {short}--{}{}", option.name, value("=", option))
}

/// The output of `--usage`: the usage in short (SL-C-01).
pub fn usage(command: &str, operands: &str, table: &[Opt]) -> String {
    let mut text = format!("Usage: {command}");
    for option in table.iter().filter(|option| option.key == option.name) {
        let word = match option.letter {
            Some(letter) => format!(" [-{letter}{}]", value(" ", option)),
            None => format!(" [--{}{}]", option.name, value("=", option)),
        };
        text.push_str(&word);
    }
    format!("{text} {operands}").trim_end().to_owned() + "\n"
}

fn value(before: &str, option: &Opt) -> String {
    match option.takes {
        Takes::Nothing => String::new(),
        Takes::Value => format!("{before}VALUE"),
        Takes::Maybe | Takes::MaybeGlued => format!("[{}VALUE]", before.trim()),
    }
}
