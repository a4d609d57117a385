//! Conditions on the properties of nodes: `gpu & !old`, `mem>=64 | (arch="zen 4")`.

use super::shorten;
use muster_schemas::resources::{NodeFilter, PropertyValue, Relation};

/// The maximum depth of a condition; protects the stack from `((((...`.
const MOST_DEPTH: u32 = 64;

/// Reads a condition.
///
/// ```text
/// either  = both { "|" both }
/// both    = unary { "&" unary }
/// unary   = "!" unary | "(" either ")" | PROPERTY [ RELATION VALUE ]
/// RELATION: = == != < <= > >=      VALUE: a whole number, a word, true, false, or text in quotes
/// ```
pub fn parse_condition(text: &str) -> Result<NodeFilter, String> {
    let mut parser = Parser { text, at: 0 };
    let filter = parser.either(0)?;
    parser.skip_space();
    match parser.peek() {
        None => Ok(filter),
        Some(found) => Err(parser.error(&format!("expected `&`, `|` or the end, found `{found}`"))),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Takes the token if the text continues with it.
    fn take(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn error(&self, message: &str) -> String {
        let column = self.text[..self.at].chars().count() + 1;
        format!("`{}` at character {column}: {message}", shorten(self.text))
    }

    fn either(&mut self, depth: u32) -> Result<NodeFilter, String> {
        if depth > MOST_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        let mut parts = vec![self.both(depth)?];
        while self.take("|") {
            self.take("|");
            parts.push(self.both(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { NodeFilter::Any(parts) })
    }

    fn both(&mut self, depth: u32) -> Result<NodeFilter, String> {
        let mut parts = vec![self.unary(depth)?];
        while self.take("&") {
            self.take("&");
            parts.push(self.unary(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { NodeFilter::All(parts) })
    }

    fn unary(&mut self, depth: u32) -> Result<NodeFilter, String> {
        if depth > MOST_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        if self.take("!") {
            return Ok(NodeFilter::Not(Box::new(self.unary(depth + 1)?)));
        }
        if self.take("(") {
            let inner = self.either(depth + 1)?;
            return if self.take(")") { Ok(inner) } else { Err(self.error("expected `)`")) };
        }
        let property = self.word("the name of a property")?.to_owned();
        match self.relation() {
            None => Ok(NodeFilter::Has(property)),
            Some(relation) => Ok(NodeFilter::Compare { property, relation, value: self.value()? }),
        }
    }

    fn relation(&mut self) -> Option<Relation> {
        // Longer ones first: `<=` begins with `<`.
        const RELATIONS: [(&str, Relation); 7] = [
            ("==", Relation::Equal),
            ("!=", Relation::NotEqual),
            ("<=", Relation::LessOrEqual),
            (">=", Relation::GreaterOrEqual),
            ("=", Relation::Equal),
            ("<", Relation::Less),
            (">", Relation::Greater),
        ];
        RELATIONS.iter().find(|(token, _)| self.take(token)).map(|(_, relation)| *relation)
    }

    fn word(&mut self, expected: &str) -> Result<&'a str, String> {
        self.skip_space();
        let rest = self.rest();
        let part_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
        let end = rest.find(|c: char| !part_of_word(c)).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.error(&format!("expected {expected}")));
        }
        self.at += end;
        Ok(&rest[..end])
    }

    fn value(&mut self) -> Result<PropertyValue, String> {
        self.skip_space();
        if let Some(quote @ ('"' | '\'')) = self.peek() {
            let inside = &self.rest()[1..];
            let end = inside.find(quote).ok_or_else(|| self.error("the quote is not closed"))?;
            self.at += end + 2;
            return Ok(PropertyValue::Text(inside[..end].to_owned()));
        }
        let word = self.word("a value")?;
        Ok(match word {
            "true" => PropertyValue::Flag(true),
            "false" => PropertyValue::Flag(false),
            _ => word.parse().map_or_else(|_| PropertyValue::Text(word.to_owned()), PropertyValue::Number),
        })
    }
}
