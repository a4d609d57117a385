//! `scontrol` and `sacctmgr` without a command: they read commands from their input, one in each line.

use super::{getopt, request::printed_only, sacctmgr, scontrol};

/// A line of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// It is blank.
    Nothing,
    /// `exit`, `quit`: the last one.
    Exit,
    /// `!!`: the last command once more.
    Again,
    /// A way to show what comes: the option of the command that does the same.
    Mode(&'static str),
    /// A command, as words.
    Command(Vec<String>),
    /// A quote is not closed.
    Unclosed,
}

/// Words for ways to show things, each with the option for it.
const MODES: [(&str, &str); 9] = [
    ("all", "--all"),
    ("associations", "--associations"),
    ("details", "--details"),
    ("hide", "--hide"),
    ("oneliner", "--oneliner"),
    ("parsable", "--parsable"),
    ("quiet", "--quiet"),
    ("readonly", "--readonly"),
    ("verbose", "--verbose"),
];

/// The options of a command line without a command; `None` if it has one, or only prints a text.
pub fn options(command: &str, words: &[String]) -> Option<Vec<String>> {
    let line = getopt::parse(command, table(command)?, words).ok()?;
    let asks = line.words.is_empty() && printed_only::<()>(&line).is_none();
    asks.then(|| words.to_vec())
}

fn table(command: &str) -> Option<&'static [getopt::Opt]> {
    match command {
        "sacctmgr" => Some(sacctmgr::OPTIONS),
        "scontrol" => Some(scontrol::OPTIONS),
        _ => None,
    }
}

/// Reads a line of a command's shell. Blanks separate words, quotes group them.
pub fn read(command: &str, text: &str) -> Line {
    let Some(words) = split(text) else { return Line::Unclosed };
    let [first, rest @ ..] = words.as_slice() else { return Line::Nothing };
    let knows = |option: &str| {
        let known = table(command).unwrap_or_default();
        known.iter().any(|one| option.strip_prefix("--") == Some(one.name))
    };
    let mode = MODES.iter().find(|(word, option)| word.eq_ignore_ascii_case(first) && knows(option));
    match (first.as_str(), mode) {
        ("exit" | "quit" | "q", _) => Line::Exit,
        ("!!", _) => Line::Again,
        (_, Some((_, option))) if rest.is_empty() => Line::Mode(option),
        _ => Line::Command(words),
    }
}

/// The words of a line; `None` if a quote is not closed.
fn split(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in text.chars() {
        match (quote, character) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}
