//! Command lines as `getopt_long` reads them: options and words in any order, long options abbreviated, short ones glued
//! (SL-C-01, SL-C-02).

use super::Failure;

/// Whether an option takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// It has none.
    Nothing,
    /// It must have one.
    Value,
    /// It may have one: glued, or the next word if that is no option.
    Maybe,
    /// It may have one, which must be glued.
    MaybeGlued,
}

/// An option: its letter, the key under which it is reported, its name, its value. Several names may have one key.
pub struct Opt {
    /// Its letter.
    pub letter: Option<char>,
    /// Under which it is reported.
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

/// Another name of an option.
pub const fn alias(key: &'static str, name: &'static str, takes: Takes) -> Opt {
    Opt { letter: None, key, name, takes }
}

/// A command line that was read.
#[derive(Debug, Default)]
pub struct Line {
    /// The options in their order, each with its value.
    pub options: Vec<(&'static str, Option<String>)>,
    /// What is no option.
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

    /// The values of an option that can be given several times, as one list with commas.
    pub fn list(&self, key: &str) -> Option<String> {
        let values = self.options.iter().filter(|(known, _)| *known == key);
        let values: Vec<&str> = values.map(|(_, value)| value.as_deref().unwrap_or_default()).collect();
        if values.is_empty() { None } else { Some(values.join(",")) }
    }
}

/// Reads a command line; `command` is the name in messages.
///
/// # Errors
/// An option that is unknown, ambiguous, lacks its value or has one too many (SL-C-02).
pub fn parse(command: &str, table: &[Opt], arguments: &[impl AsRef<str>]) -> Result<Line, Failure> {
    let mut line = Line::default();
    let mut rest = arguments.iter().map(AsRef::as_ref).peekable();
    while let Some(word) = rest.next() {
        if word == "--" {
            line.words.extend(rest.map(str::to_owned));
            break;
        } else if let Some(long) = word.strip_prefix("--") {
            read_long(command, table, long, &mut rest, &mut line)?;
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            read_letters(command, table, letters, &mut rest, &mut line)?;
        } else {
            line.words.push(word.to_owned());
        }
    }
    Ok(line)
}

type Rest<'a, I> = std::iter::Peekable<I>;

fn read_long<'a, I: Iterator<Item = &'a str>>(
    command: &str,
    table: &[Opt],
    text: &str,
    rest: &mut Rest<'a, I>,
    line: &mut Line,
) -> Result<(), Failure> {
    let (name, glued) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let option = find(command, table, name)?;
    let value = match (option.takes, glued) {
        (Takes::Nothing, Some(_)) => {
            return Err(hint(command, format!("option '--{}' doesn't allow an argument", option.name)));
        }
        (_, Some(value)) => Some(value.to_owned()),
        (Takes::Value, None) => {
            let missing = || hint(command, format!("option '--{}' requires an argument", option.name));
            Some(rest.next().ok_or_else(missing)?.to_owned())
        }
        (Takes::Maybe, None) => next_word(rest),
        (Takes::Nothing | Takes::MaybeGlued, None) => None,
    };
    line.options.push((option.key, value));
    Ok(())
}

fn next_word<'a, I: Iterator<Item = &'a str>>(rest: &mut Rest<'a, I>) -> Option<String> {
    rest.next_if(|word| !word.starts_with('-')).map(str::to_owned)
}

/// The option of a name, or the only one that begins so.
fn find<'t>(command: &str, table: &'t [Opt], name: &str) -> Result<&'t Opt, Failure> {
    if let Some(option) = table.iter().find(|option| option.name == name) {
        return Ok(option);
    }
    let fitting: Vec<&Opt> = table.iter().filter(|option| option.name.starts_with(name)).collect();
    match fitting.as_slice() {
        [] => Err(hint(command, format!("unrecognized option '--{name}'"))),
        [first, others @ ..] if others.iter().all(|other| other.key == first.key) => Ok(first),
        several => {
            let names: Vec<String> = several.iter().map(|option| format!("'--{}'", option.name)).collect();
            Err(hint(command, format!("option '--{name}' is ambiguous; possibilities: {}", names.join(" "))))
        }
    }
}

fn read_letters<'a, I: Iterator<Item = &'a str>>(
    command: &str,
    table: &[Opt],
    letters: &str,
    rest: &mut Rest<'a, I>,
    line: &mut Line,
) -> Result<(), Failure> {
    for (place, letter) in letters.char_indices() {
        let unknown = || hint(command, format!("invalid option -- '{letter}'"));
        let option = table.iter().find(|option| option.letter == Some(letter)).ok_or_else(unknown)?;
        let glued = Some(&letters[place + letter.len_utf8()..]).filter(|glued| !glued.is_empty());
        let value = match (option.takes, glued) {
            (Takes::Nothing, _) => {
                line.options.push((option.key, None));
                continue;
            }
            (_, Some(value)) => Some(value.to_owned()),
            (Takes::Value, None) => {
                let missing = || hint(command, format!("option requires an argument -- '{letter}'"));
                Some(rest.next().ok_or_else(missing)?.to_owned())
            }
            (Takes::Maybe, None) => next_word(rest),
            (Takes::MaybeGlued, None) => None,
        };
        line.options.push((option.key, value));
        break;
    }
    Ok(())
}

fn hint(command: &str, text: String) -> Failure {
    let lines = vec![format!("{command}: {text}"), format!("Try \"{command} --help\" for more information")];
    Failure { lines, code: 1 }
}

/// What `--help` prints: how the command is called, and its options (SL-C-01).
pub fn help(command: &str, operands: &str, table: &[Opt]) -> String {
    let mut text = format!("Usage: {command} [OPTIONS...] {operands}").trim_end().to_owned();
    text.push('\n');
    for option in table.iter().filter(|option| option.key == option.name) {
        let short = option.letter.map_or_else(|| "    ".to_owned(), |letter| format!("-{letter}, "));
        text.push_str(&format!("\n  {short}--{}{}", option.name, value("=", option)));
    }
    text.push('\n');
    text
}

/// What `--usage` prints: how the command is called, in short (SL-C-01).
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
