//! Gives the names of a filter their properties, and its literals the types of these.

use super::{
    parse::{Node, Word, parse},
    term::{Comparison, Operand, Predicate},
    token::Token,
};
use crate::{
    mistake::Mistake,
    resources::{
        property::Fields,
        value::{Kind, Value},
    },
    text::{shown, suggestion},
};

/// Reads a filter over these fields. An empty text is the filter that always holds.
///
/// # Errors
/// The first mistake: of syntax, an unknown property, or values of different types.
pub fn read(text: &str, fields: &Fields) -> Result<Predicate, Mistake> {
    if text.trim().is_empty() {
        return Ok(Predicate::ALWAYS);
    }
    Checker { text, fields }.predicate(parse(text)?)
}

struct Checker<'c> {
    text: &'c str,
    fields: &'c Fields,
}

impl Checker<'_> {
    fn predicate(&self, node: Node) -> Result<Predicate, Mistake> {
        Ok(match node {
            Node::All(nodes) => Predicate::All(self.predicates(nodes)?),
            Node::Any(nodes) => Predicate::Any(self.predicates(nodes)?),
            Node::Not(node) => Predicate::Not(Box::new(self.predicate(*node)?)),
            Node::Compare(left, comparison, right) => self.compare(&left, comparison, &right)?,
            Node::Like(left, pattern) => self.like(&left, &pattern)?,
            Node::In(left, words) => {
                let (name, kind) = self.property(&left)?;
                let values = words.iter().map(|word| self.literal(word, &name, kind)).collect::<Result<_, _>>()?;
                Predicate::In(name, values)
            }
            Node::Between(left, least, greatest) => Predicate::All(vec![
                self.compare(&left, Comparison::AtLeast, &least)?,
                self.compare(&left, Comparison::AtMost, &greatest)?,
            ]),
            Node::Unset(left) => Predicate::Unset(self.property(&left)?.0),
        })
    }

    fn predicates(&self, nodes: Vec<Node>) -> Result<Vec<Predicate>, Mistake> {
        nodes.into_iter().map(|node| self.predicate(node)).collect()
    }

    /// A comparison, of which at least one side is a property.
    fn compare(&self, left: &Word, comparison: Comparison, right: &Word) -> Result<Predicate, Mistake> {
        let (left, right) = match (&left.token, &right.token) {
            (Token::Word(_), Token::Word(_)) => {
                let ((name, kind), (other, other_kind)) = (self.property(left)?, self.property(right)?);
                if kind != other_kind {
                    let message = format!("{name} is {}, {other} is {}", kind.word(), other_kind.word());
                    return Err(self.mistake(right, message));
                }
                (Operand::Property(name), Operand::Property(other))
            }
            (_, Token::Word(_)) => {
                let (name, kind) = self.property(right)?;
                (Operand::Literal(self.literal(left, &name, kind)?), Operand::Property(name))
            }
            _ => {
                let (name, kind) = self.property(left)?;
                let literal = self.literal(right, &name, kind)?;
                (Operand::Property(name), Operand::Literal(literal))
            }
        };
        Ok(Predicate::Compare(left, comparison, right))
    }

    fn like(&self, left: &Word, pattern: &Word) -> Result<Predicate, Mistake> {
        let (name, kind) = self.property(left)?;
        match (&pattern.token, kind) {
            (Token::Text(text), Kind::Text) => Ok(Predicate::Like(name, text.clone())),
            (Token::Text(_), Kind::Integer) => {
                Err(self.mistake(left, format!("{name} is an integer; LIKE needs a text")))
            }
            (token, _) => Err(self.mistake(pattern, format!("expected a pattern in quotes, found {}", token.shown()))),
        }
    }

    /// The property of a word. Names may be written in any case.
    fn property(&self, word: &Word) -> Result<(String, Kind), Mistake> {
        let Token::Word(name) = &word.token else {
            return Err(self.mistake(word, format!("expected the name of a property, found {}", word.token.shown())));
        };
        let small = name.to_ascii_lowercase();
        match self.fields.get(&small) {
            Some(kind) => Ok((small, *kind)),
            None => {
                let near = suggestion(&small, self.fields.keys().map(String::as_str));
                Err(self.mistake(word, format!("no property is called '{}'{near}", shown(name))))
            }
        }
    }

    /// The value of a literal. A number in quotes compares with an integer.
    fn literal(&self, word: &Word, name: &str, kind: Kind) -> Result<Value, Mistake> {
        let value = match (&word.token, kind) {
            (Token::Number(number), Kind::Integer) => Some(Value::Integer(*number)),
            (Token::Text(text), Kind::Integer) => Value::read(kind, text),
            (Token::Text(text), Kind::Text) => Some(Value::text(text)),
            _ => None,
        };
        value.ok_or_else(|| {
            let expected = match kind {
                Kind::Integer => "an integer",
                Kind::Text => "a text in quotes",
            };
            self.mistake(word, format!("{name} compares with {expected}, found {}", word.token.shown()))
        })
    }

    fn mistake(&self, word: &Word, message: String) -> Mistake {
        Mistake::at(self.text, word.at, message)
    }
}
