//! Reads commands.

use super::command::{Change, Command, ObjectKind, ObjectName, Operation, Verb};
use crate::refusal::shown;
use std::fmt;

/// The longest command, in bytes.
const MOST_BYTES: usize = 1 << 20;
/// The most names and attributes of a command.
const MOST_PARTS: usize = 10_000;

/// Why a command cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The character at which it stops making sense, from 1.
    pub column: usize,
    /// The word there; empty at the end.
    pub token: String,
    /// What was expected.
    pub expected: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, token, expected } = self;
        match token.is_empty() {
            true => write!(f, "character {column}: the command ends here: {expected}"),
            false => write!(f, "character {column}: `{}`: {expected}", shown(token)),
        }
    }
}

impl std::error::Error for SyntaxError {}

/// A command of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The line on which it begins, from 1.
    pub line: usize,
    /// The command, or why it cannot be read.
    pub command: Result<Command, SyntaxError>,
}

/// Reads all commands of a text: one per line or between semicolons. A backslash at the end of a line continues it, and a
/// line that begins with `#` is a comment.
pub fn script(text: &str) -> Vec<Written> {
    let mut all = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (line, content) in (1..).zip(text.lines()) {
        let (begun, mut whole) = open.take().unwrap_or((line, String::new()));
        match content.strip_suffix('\\') {
            Some(content) => {
                whole.push_str(content);
                whole.push(' ');
                open = Some((begun, whole));
            }
            None => {
                whole.push_str(content);
                take_line(begun, &whole, &mut all);
            }
        }
    }
    if let Some((begun, whole)) = open {
        take_line(begun, &whole, &mut all);
    }
    all
}

fn take_line(line: usize, content: &str, all: &mut Vec<Written>) {
    if content.trim_start().starts_with('#') {
        return;
    }
    let mut column = 0;
    for part in crate::text::split(content, ';') {
        let command = parse(part).map_err(|wrong| SyntaxError { column: column + wrong.column, ..wrong });
        all.extend(command.transpose().map(|command| Written { line, command }));
        column += part.chars().count() + 1;
    }
}

/// Reads one command; `None` for a blank text or a comment.
///
/// # Errors
/// Where it stops making sense, and what was expected.
pub fn parse(text: &str) -> Result<Option<Command>, SyntaxError> {
    let mut words = Cursor { text, at: 0 };
    words.skip_blanks();
    if words.rest().is_empty() || words.rest().starts_with('#') {
        return Ok(None);
    }
    if text.len() > MOST_BYTES {
        return Err(words.wrong("", format!("a command has at most {MOST_BYTES} bytes")));
    }
    let verb = words.keyword(&Verb::ALL, "expected create, delete, set, unset, list, print, active, quit or help")?;
    if verb.is_alone() {
        return Ok(Some(Command { verb, kind: None, names: Vec::new(), changes: Vec::new() }));
    }
    let kinds = "expected server, queue, node, resource, sched or hook";
    let kind = words.keyword(&ObjectKind::ALL, kinds)?;
    let names = words.names(verb, kind)?;
    let changes = words.changes(verb)?;
    Ok(Some(Command { verb, kind: Some(kind), names, changes }))
}

/// A place in a command.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

/// Whether a character belongs to a word that needs no quotes.
fn is_plain(c: char) -> bool {
    !c.is_whitespace() && !matches!(c, ',' | '=' | '"' | '\'')
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn wrong(&self, token: &str, expected: impl Into<String>) -> SyntaxError {
        let column = self.text[..self.at].chars().count() + 1;
        SyntaxError { column, token: token.to_owned(), expected: expected.into() }
    }

    /// An error about what follows.
    fn wrong_here(&self, expected: impl Into<String>) -> SyntaxError {
        let token = self.rest().split_whitespace().next().unwrap_or_default();
        self.wrong(token, expected)
    }

    /// The letters of the next word.
    fn word(&self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        &rest[..rest.find(|c: char| !fits(c)).unwrap_or(rest.len())]
    }

    fn take(&mut self, word: &str) {
        self.at += word.len();
    }

    /// A word of a list, perhaps abbreviated.
    fn keyword<T: Copy>(&mut self, known: &[(&str, T)], expected: &str) -> Result<T, SyntaxError> {
        self.skip_blanks();
        let word = self.word(|c| c.is_ascii_alphabetic());
        let lower = word.to_ascii_lowercase();
        let found = known.iter().find(|(full, _)| !lower.is_empty() && full.starts_with(&lower));
        let Some((_, found)) = found else { return Err(self.wrong_here(expected)) };
        let behind = self.rest()[word.len()..].chars().next();
        if behind.is_some_and(|c| !c.is_whitespace() && c != '@') {
            return Err(self.wrong_here(expected));
        }
        self.take(word);
        Ok(*found)
    }

    /// Names between commas without blanks. Only a server's command, and one about the active ones, can be without.
    fn names(&mut self, verb: Verb, kind: ObjectKind) -> Result<Vec<ObjectName>, SyntaxError> {
        self.skip_blanks();
        if kind == ObjectKind::Server && !self.rest().starts_with('@') && !self.is_name_alone() {
            return Ok(Vec::new());
        }
        let mut names = Vec::new();
        if self.rest().is_empty() || self.is_change(verb) {
            return match verb {
                Verb::Create | Verb::Delete => Err(self.wrong_here(format!("expected the name of a {kind}"))),
                _ => Ok(names),
            };
        }
        loop {
            let word = self.word(|c| is_plain(c) && c != ';');
            let (name, server) = word.split_once('@').map_or((word, None), |(name, server)| (name, Some(server)));
            let is_bad =
                word.is_empty() || name.starts_with('-') || server.is_some_and(|s| s.is_empty() || s.contains('@'));
            if is_bad {
                return Err(self.wrong_here(format!("expected the name of a {kind}")));
            }
            self.take(word);
            let name = Some(name.to_owned()).filter(|name| !name.is_empty());
            names.push(ObjectName { name, server: server.map(str::to_owned) });
            if names.len() > MOST_PARTS {
                return Err(self.wrong("", format!("a command has at most {MOST_PARTS} names")));
            }
            if !self.rest().starts_with(',') {
                return Ok(names);
            }
            self.take(",");
        }
    }

    /// Whether a server's name follows: a word that no attribute of the server follows as its value.
    fn is_name_alone(&self) -> bool {
        let word = self.word(|c| is_plain(c) && c != ';');
        let behind = self.rest()[word.len()..].trim_start();
        let next_is_value = behind.starts_with('=') || behind.starts_with("+=") || behind.starts_with("-=");
        !word.is_empty() && !next_is_value && behind.starts_with(|c: char| c.is_ascii_alphabetic())
    }

    /// Whether an attribute with a value follows, not a name.
    fn is_change(&self, verb: Verb) -> bool {
        let word = self.word(|c| is_plain(c) && !matches!(c, '+' | '-'));
        let behind = self.rest()[word.len()..].trim_start();
        let next_is_value = behind.starts_with('=') || behind.starts_with("+=") || behind.starts_with("-=");
        verb.takes_values() && !word.is_empty() && next_is_value
    }

    /// Attributes between commas.
    fn changes(&mut self, verb: Verb) -> Result<Vec<Change>, SyntaxError> {
        let mut changes = Vec::new();
        self.skip_blanks();
        if self.rest().is_empty() {
            return match verb {
                Verb::Set | Verb::Unset => Err(self.wrong_here("expected an attribute")),
                _ => Ok(changes),
            };
        }
        if matches!(verb, Verb::Active | Verb::Delete) {
            return Err(self.wrong_here("expected nothing more"));
        }
        loop {
            changes.push(self.change(verb)?);
            if changes.len() > MOST_PARTS {
                return Err(self.wrong("", format!("a command has at most {MOST_PARTS} attributes")));
            }
            self.skip_blanks();
            if self.rest().is_empty() {
                return Ok(changes);
            }
            if !self.rest().starts_with(',') {
                return Err(self.wrong_here("expected a comma; values with blanks need quotes"));
            }
            self.take(",");
        }
    }

    fn change(&mut self, verb: Verb) -> Result<Change, SyntaxError> {
        self.skip_blanks();
        let attribute = self.name("an attribute")?;
        let resource = match self.rest().starts_with('.') {
            true => {
                self.take(".");
                Some(self.name("a resource")?)
            }
            false => None,
        };
        self.skip_blanks();
        let operation = match self.rest() {
            rest if rest.starts_with("+=") => Some(("+=", Operation::Add)),
            rest if rest.starts_with("-=") => Some(("-=", Operation::Remove)),
            rest if rest.starts_with('=') => Some(("=", Operation::Assign)),
            _ => None,
        };
        let value = match (operation, verb.takes_values()) {
            (None, false) => None,
            (None, true) => return Err(self.wrong_here("expected =, += or -=")),
            (Some(_), false) => return Err(self.wrong_here("this command takes no values")),
            (Some((sign, operation)), true) => {
                self.take(sign);
                Some((operation, self.value()?))
            }
        };
        Ok(Change { attribute, resource, value })
    }

    fn name(&mut self, what: &str) -> Result<String, SyntaxError> {
        let word = self.word(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        // A minus sign before `=` belongs to the operator.
        let word = match self.rest()[word.len()..].starts_with('=') {
            true => word.strip_suffix('-').unwrap_or(word),
            false => word,
        };
        if !word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return Err(self.wrong_here(format!("expected {what}")));
        }
        self.take(word);
        Ok(word.to_owned())
    }

    /// A value: a word, or a text in quotes. A backslash protects the next character outside quotes.
    fn value(&mut self) -> Result<String, SyntaxError> {
        self.skip_blanks();
        let quote = self.rest().chars().next().filter(|c| matches!(c, '"' | '\''));
        if let Some(quote) = quote {
            let inside = &self.rest()[1..];
            let Some(end) = inside.find(quote) else { return Err(self.wrong_here("the quote is not closed")) };
            let value = inside[..end].to_owned();
            self.at += end + 2;
            return Ok(value);
        }
        let mut value = String::new();
        let mut length = 0;
        let mut letters = self.rest().chars();
        while let Some(c) = letters.next() {
            match c {
                '\\' => {
                    length += 1;
                    if let Some(c) = letters.next() {
                        length += c.len_utf8();
                        value.push(c);
                    }
                }
                c if c.is_whitespace() || c == ',' => break,
                c => {
                    length += c.len_utf8();
                    value.push(c);
                }
            }
        }
        if value.is_empty() {
            return Err(self.wrong_here("expected a value; an empty one needs quotes"));
        }
        self.at += length;
        Ok(value)
    }
}
