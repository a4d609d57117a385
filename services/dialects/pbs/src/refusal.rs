//! Why a command line, a script or a value is refused.

use std::fmt;

/// The longest part of a user's word that a message repeats, in characters.
const MOST_SHOWN: usize = 80;

/// A word as messages repeat it: cut to a readable length, without control characters.
pub fn shown(word: &str) -> String {
    let printable = |c: char| if c.is_control() { '?' } else { c };
    let mut text: String = word.chars().take(MOST_SHOWN).map(printable).collect();
    if word.chars().nth(MOST_SHOWN).is_some() {
        text.push_str("...");
    }
    text
}

/// Why a request is refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The command has no option with this letter.
    UnknownLetter(char),
    /// The command has no option with this name.
    UnknownName(String),
    /// The option with this letter needs a value.
    ValueMissing(char),
    /// The command takes no such operands, or lacks one.
    Operands(String),
    /// The value of an option cannot be read.
    Value {
        /// The option, such as `-l`.
        option: String,
        /// The word that is wrong.
        word: String,
        /// The fault, or the expected form.
        why: String,
    },
    /// The request can be read, but this system does not do it.
    Unsupported {
        /// The option or word.
        what: String,
        /// Why, and what helps.
        why: String,
    },
    /// Two requests exclude each other.
    Conflict(String),
    /// The script cannot be submitted.
    Script(String),
}

impl Refusal {
    /// A value that cannot be read.
    pub fn value(option: &str, word: &str, why: impl Into<String>) -> Self {
        Self::Value { option: option.to_owned(), word: shown(word), why: why.into() }
    }

    /// Something that this system does not do.
    pub fn unsupported(what: &str, why: impl Into<String>) -> Self {
        Self::Unsupported { what: shown(what), why: why.into() }
    }

    /// The same for the option in whose value the word was found.
    #[must_use]
    pub fn of_option(self, option: &str) -> Self {
        match self {
            Self::Value { word, why, .. } => Self::Value { option: option.to_owned(), word, why },
            other => other,
        }
    }

    /// Whether the command's usage is printed after the message.
    pub const fn is_about_usage(&self) -> bool {
        matches!(self, Self::UnknownLetter(_) | Self::UnknownName(_) | Self::ValueMissing(_) | Self::Operands(_))
    }

    /// The exit status of the command: 2 if it cannot be read, 1 if it is refused.
    pub const fn exit_status(&self) -> u8 {
        match self {
            Self::Unsupported { .. } | Self::Conflict(_) | Self::Script(_) => 1,
            _ => 2,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownLetter(letter) => write!(f, "invalid option -- '{letter}'"),
            Self::UnknownName(name) => write!(f, "unrecognized option '--{}'", shown(name)),
            Self::ValueMissing(letter) => write!(f, "option requires an argument -- '{letter}'"),
            Self::Operands(text) | Self::Conflict(text) | Self::Script(text) => f.write_str(text),
            Self::Value { option, word, why } => write!(f, "illegal {option} value: `{word}`: {why}"),
            Self::Unsupported { what, why } => write!(f, "{what} is not supported: {why}"),
        }
    }
}

impl std::error::Error for Refusal {}
