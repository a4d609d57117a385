//! Checked predicates: what they mean, and how they are written.

use super::like;
use crate::resources::value::Value;
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// A comparison of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`, or `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

impl Comparison {
    /// The comparison of a sign.
    pub fn of_sign(sign: &str) -> Option<Self> {
        Some(match sign {
            "=" => Self::Equal,
            "!=" | "<>" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::AtMost,
            ">" => Self::Greater,
            ">=" => Self::AtLeast,
            _ => return None,
        })
    }

    const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        }
    }

    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }
}

/// A side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operand {
    /// The value of a property.
    Property(String),
    /// A value.
    Literal(Value),
}

impl Operand {
    fn value<'v>(&'v self, values: &'v BTreeMap<String, Value>) -> Option<&'v Value> {
        match self {
            Self::Property(name) => values.get(name),
            Self::Literal(value) => Some(value),
        }
    }
}

/// A condition on the properties of a resource or a job. Both sides of a comparison have the same type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Predicate {
    /// All hold; without terms it always holds.
    All(Vec<Predicate>),
    /// At least one holds.
    Any(Vec<Predicate>),
    /// It does not hold.
    Not(Box<Predicate>),
    /// Two values compare so.
    Compare(Operand, Comparison, Operand),
    /// The text of a property matches a pattern.
    Like(String, String),
    /// The value of a property is one of these.
    In(String, BTreeSet<Value>),
    /// The property is unset.
    Unset(String),
}

impl Predicate {
    /// The predicate that always holds.
    pub const ALWAYS: Self = Self::All(Vec::new());

    /// Whether values satisfy it. A comparison with an unset property is neither true nor false, and neither is its
    /// negation.
    pub fn matches(&self, values: &BTreeMap<String, Value>) -> bool {
        self.truth(values) == Some(true)
    }

    fn truth(&self, values: &BTreeMap<String, Value>) -> Option<bool> {
        match self {
            Self::All(terms) => all(terms.iter().map(|term| term.truth(values))),
            Self::Any(terms) => all(terms.iter().map(|term| term.truth(values).map(|truth| !truth))).map(|none| !none),
            Self::Not(term) => term.truth(values).map(|truth| !truth),
            Self::Compare(left, comparison, right) => {
                Some(comparison.holds(left.value(values)?.cmp(right.value(values)?)))
            }
            Self::Like(name, pattern) => match values.get(name)? {
                Value::Text(text) => Some(like::matches(pattern, text)),
                Value::Integer(_) => Some(false),
            },
            Self::In(name, list) => values.get(name).map(|value| list.contains(value)),
            Self::Unset(name) => Some(!values.contains_key(name)),
        }
    }

    /// Whether it says anything about a property.
    pub fn mentions(&self, property: &str) -> bool {
        let is_it = |operand: &Operand| matches!(operand, Operand::Property(name) if name == property);
        match self {
            Self::All(terms) | Self::Any(terms) => terms.iter().any(|term| term.mentions(property)),
            Self::Not(term) => term.mentions(property),
            Self::Compare(left, _, right) => is_it(left) || is_it(right),
            Self::Like(name, _) | Self::In(name, _) | Self::Unset(name) => name == property,
        }
    }

    /// The predicate that holds if both do.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::All(terms), other) if terms.is_empty() => other,
            (one, Self::All(terms)) if terms.is_empty() => one,
            (Self::All(mut terms), other) => {
                terms.push(other);
                Self::All(terms)
            }
            (one, other) => Self::All(vec![one, other]),
        }
    }
}

/// Three-valued AND: false if one is false, else unknown if one is unknown.
fn all(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut is_known = true;
    for truth in truths {
        match truth {
            Some(false) => return Some(false),
            Some(true) => {}
            None => is_known = false,
        }
    }
    is_known.then_some(true)
}

/// Written so that reading it gives the same predicate.
impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(terms) => write_terms(f, terms, " AND "),
            Self::Any(terms) => write_terms(f, terms, " OR "),
            Self::Not(term) => write!(f, "NOT ({term})"),
            Self::Compare(left, comparison, right) => write!(f, "{left} {} {right}", comparison.sign()),
            Self::Like(name, pattern) => write!(f, "{name} LIKE {}", quoted(pattern)),
            Self::In(name, list) => {
                let list: Vec<String> = list.iter().map(literal).collect();
                write!(f, "{name} IN ({})", list.join(", "))
            }
            Self::Unset(name) => write!(f, "{name} IS NULL"),
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Property(name) => f.write_str(name),
            Self::Literal(value) => f.write_str(&literal(value)),
        }
    }
}

fn write_terms(f: &mut fmt::Formatter<'_>, terms: &[Predicate], between: &str) -> fmt::Result {
    for (place, term) in terms.iter().enumerate() {
        f.write_str(if place > 0 { between } else { "" })?;
        match term {
            Predicate::All(_) | Predicate::Any(_) => write!(f, "({term})")?,
            term => write!(f, "{term}")?,
        }
    }
    Ok(())
}

fn literal(value: &Value) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => quoted(text),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
