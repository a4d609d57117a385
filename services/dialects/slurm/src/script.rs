//! Batch scripts: their requirements, and the options in their `#SBATCH` lines (SL-C-06, SL-C-07, SL-S-05 to S-07).

mod foreign;

use crate::{
    messages::Refusal,
    options::{Command, CommandLine, Given, SiteOptions, parse_words},
};

/// The beginning of an option line.
const MARKER: &str = "#SBATCH";

/// The text of a script, if it can be submitted.
///
/// # Errors
/// Why it cannot be submitted (SL-C-06).
pub fn check(bytes: &[u8]) -> Result<&str, Refusal> {
    if bytes.is_empty() {
        return Err(Refusal::EmptyScript);
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Refusal::BlankScript);
    }
    if !bytes.starts_with(b"#!") {
        return Err(Refusal::NotAScript);
    }
    if bytes.contains(&0) {
        return Err(Refusal::NulInScript);
    }
    if bytes.windows(2).any(|pair| pair == b"\r\n") {
        return Err(Refusal::DosLineBreaks);
    }
    std::str::from_utf8(bytes).map_err(|_| Refusal::ScriptNotText)
}

/// The script that a command line of `sbatch` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// One made from a command.
    Wrapped(String),
    /// A file; see [`candidates`].
    File {
        /// Its name.
        name: String,
        /// The script's arguments.
        args: Vec<String>,
    },
    /// The contents of standard input.
    StandardInput,
}

/// The script that a command line of `sbatch` asks for.
///
/// # Errors
/// [`Refusal::ArgumentsWithWrap`] (SL-C-08).
pub fn wanted(line: &CommandLine) -> Result<Wanted, Refusal> {
    match (line.first("wrap"), line.words().split_first()) {
        (Some(_), Some(_)) => Err(Refusal::ArgumentsWithWrap),
        (Some(command), None) => Ok(Wanted::Wrapped(command.to_owned())),
        (None, Some((name, args))) => Ok(Wanted::File { name: name.clone(), args: args.to_vec() }),
        (None, None) => Ok(Wanted::StandardInput),
    }
}

/// The paths to try for a script, in this order (SL-C-06): a name that contains a `/` or begins with a `.` is a path;
/// any other is searched in the working directory, then in the folders of `PATH`.
pub fn candidates(name: &str, directory: &str, path: &str) -> Vec<String> {
    let inside = |folder: &str| format!("{}/{name}", folder.trim_end_matches('/'));
    if name.starts_with('/') {
        return vec![name.to_owned()];
    }
    let here = inside(directory);
    if name.starts_with('.') || name.contains('/') {
        return vec![here];
    }
    let folders = path.split(':').filter(|folder| folder.starts_with('/'));
    std::iter::once(here).chain(folders.map(inside)).collect()
}

/// The script that runs a command given with `--wrap` (SL-C-08).
pub fn wrap(command: &str) -> String {
    format!("#!/bin/sh\n# Made by sbatch --wrap.\n\n{command}\n")
}

/// The options of a script, by component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptOptions {
    /// The options of each component, in order; at least one component.
    pub sections: Vec<Vec<Given>>,
    /// Warnings, which stop nothing.
    pub warnings: Vec<String>,
    /// The mask for new files that `#PBS` lines set.
    pub umask: Option<u32>,
}

/// Reads the option lines of a script: those that begin in column one with `#SBATCH`, up to the first line that is
/// neither blank nor a comment. A line `#SBATCH hetjob` begins the next component; options after the word are its first
/// (SL-S-05).
///
/// # Errors
/// Words that are not options, unknown options, or unclosed quotes.
pub fn options(text: &str) -> Result<ScriptOptions, Refusal> {
    options_with(text, SiteOptions::default())
}

/// The same with the options of a site (SL-S-22).
///
/// # Errors
/// See [`options`].
pub fn options_with(text: &str, site: SiteOptions) -> Result<ScriptOptions, Refusal> {
    let mut sections = vec![Vec::new()];
    let mut warnings = Vec::new();
    for (number, line) in comment_lines(text) {
        let Some(rest) = option_line(line) else { continue };
        let words = split_words(rest, number)?;
        let words = match words.split_first() {
            Some((word, rest)) if separator(word).is_some() => {
                warnings.extend(separator(word).flatten().map(str::to_owned));
                sections.push(Vec::new());
                rest
            }
            _ => &words[..],
        };
        let section = sections.last_mut();
        let options = parse_words(Command::Sbatch, site, words)?;
        if let Some(section) = section {
            section.extend(options);
        }
    }
    Ok(ScriptOptions { sections, warnings, umask: None })
}

impl ScriptOptions {
    /// Whether its lines give an option, for whichever component.
    pub fn gives(&self, name: &str) -> bool {
        self.sections.iter().flatten().any(|given| given.option.name == name)
    }
}

/// The lines before the first that is neither blank nor a comment, with their numbers from 1.
pub(crate) fn comment_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_comment = |line: &str| line.trim_start().is_empty() || line.trim_start().starts_with('#');
    text.lines().enumerate().map(|(index, line)| (index + 1, line)).take_while(move |(_, line)| is_comment(line))
}

/// The rest of an option line after `#SBATCH`.
fn option_line(line: &str) -> Option<&str> {
    line.strip_prefix(MARKER).filter(|rest| rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_whitespace()))
}

/// Whether a line begins the options of another component.
pub(crate) fn separates_components(line: &str) -> bool {
    let first = option_line(line).and_then(|rest| rest.split_ascii_whitespace().next());
    first.is_some_and(|word| separator(word).is_some())
}

/// Whether a word separates components, with a warning if it is the old one.
fn separator(word: &str) -> Option<Option<&'static str>> {
    if word.eq_ignore_ascii_case("hetjob") {
        return Some(None);
    }
    word.eq_ignore_ascii_case("packjob").then_some(Some("the directive 'packjob' is deprecated, use 'hetjob'"))
}

/// The words of a line. Blanks separate, `"` and `'` group, `\` takes the next character literally (except between
/// `'`), and a `#` at the beginning of a word ends the line.
fn split_words(text: &str, line: usize) -> Result<Vec<String>, Refusal> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), c) if c == open => quote = None,
            (Some('"'), '\\') if matches!(characters.peek(), Some('"' | '\\')) => {
                word.get_or_insert_default().extend(characters.next());
            }
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(characters.next()),
            (None, '#') if word.is_none() => break,
            (None, c) if c.is_ascii_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    match quote {
        Some(quote) => Err(Refusal::UnmatchedQuote { line, quote }),
        None => {
            words.extend(word);
            Ok(words)
        }
    }
}
