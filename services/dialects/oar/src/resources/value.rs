//! Typed values of properties.

use muster_schemas::resources::PropertyValue;
use std::fmt;

/// The longest text of a property, in bytes.
pub const LONGEST_TEXT: usize = 255;

/// The type of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of 64 bits.
    Integer,
    /// A text of at most [`LONGEST_TEXT`] bytes.
    Text,
}

impl Kind {
    /// The word for it in messages.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Integer => "an integer",
            Self::Text => "a text",
        }
    }
}

/// The value of a property. A property without a value is unset.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// See [`Kind::Integer`].
    Integer(i64),
    /// See [`Kind::Text`].
    Text(String),
}

impl Value {
    /// A text value.
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// Its type.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Integer(_) => Kind::Integer,
            Self::Text(_) => Kind::Text,
        }
    }

    /// Reads the value of a property of this type, as commands give it. `None` if it is no such value.
    pub fn read(kind: Kind, word: &str) -> Option<Self> {
        match kind {
            Kind::Integer => word.trim().parse().ok().map(Self::Integer),
            Kind::Text => (word.len() <= LONGEST_TEXT && !word.contains(char::is_control)).then(|| Self::text(word)),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// The value of a property of a node as OAR writes it: yes and no are texts there.
pub fn property_text(value: &PropertyValue) -> String {
    match value {
        PropertyValue::Flag(true) => "YES".to_owned(),
        PropertyValue::Flag(false) => "NO".to_owned(),
        other => other.to_string(),
    }
}
