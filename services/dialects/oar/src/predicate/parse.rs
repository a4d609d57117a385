//! The grammar of filters, without types.

use super::{
    term::Comparison,
    token::{Token, tokens},
};
use crate::mistake::Mistake;

/// The deepest nesting of parentheses and `NOT`.
pub const DEEPEST: usize = 64;
/// The greatest number of tokens of a filter.
pub const MOST_TOKENS: usize = 4096;

/// A literal or a name, with the byte at which it begins.
#[derive(Clone, Debug)]
pub struct Word {
    /// The byte at which it begins.
    pub at: usize,
    /// The token: a name, a number or a text.
    pub token: Token,
}

/// A filter as it is written. Names may be unknown, and types may clash.
#[derive(Clone, Debug)]
pub enum Node {
    /// Terms with `AND`.
    All(Vec<Node>),
    /// Terms with `OR`.
    Any(Vec<Node>),
    /// `NOT`.
    Not(Box<Node>),
    /// `a < b`.
    Compare(Word, Comparison, Word),
    /// `a LIKE 'x%'`.
    Like(Word, Word),
    /// `a IN (1, 2)`.
    In(Word, Vec<Word>),
    /// `a BETWEEN 1 AND 2`.
    Between(Word, Word, Word),
    /// `a IS NULL`.
    Unset(Word),
}

/// The words with a meaning of their own.
const KEYWORDS: [&str; 8] = ["AND", "OR", "NOT", "LIKE", "IN", "BETWEEN", "IS", "NULL"];

/// Reads a filter.
///
/// # Errors
/// The first mistake.
pub fn parse(text: &str) -> Result<Node, Mistake> {
    let tokens = tokens(text)?;
    if let Some((at, _)) = tokens.get(MOST_TOKENS) {
        return Err(Mistake::at(text, *at, format!("a filter has at most {MOST_TOKENS} words and signs")));
    }
    let mut parser = Parser { text, tokens: &tokens, depth: 0 };
    let node = parser.any()?;
    match parser.tokens.first() {
        None => Ok(node),
        Some((at, token)) => {
            let what = format!("expected AND, OR or the end of the filter, found {}", token.shown());
            Err(Mistake::at(text, *at, what))
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    /// The tokens that are left.
    tokens: &'t [(usize, Token)],
    depth: usize,
}

impl Parser<'_> {
    fn any(&mut self) -> Result<Node, Mistake> {
        let mut terms = vec![self.all()?];
        while self.takes_word("OR") {
            terms.push(self.all()?);
        }
        Ok(single_or(terms, Node::Any))
    }

    fn all(&mut self) -> Result<Node, Mistake> {
        let mut terms = vec![self.one()?];
        while self.takes_word("AND") {
            terms.push(self.one()?);
        }
        Ok(single_or(terms, Node::All))
    }

    fn one(&mut self) -> Result<Node, Mistake> {
        if self.takes_word("NOT") {
            return Ok(Node::Not(Box::new(self.deeper(Self::one)?)));
        }
        if self.takes_sign("(") {
            let inner = self.deeper(Self::any)?;
            self.expect_sign(")")?;
            return Ok(inner);
        }
        let left = self.operand("the name of a property")?;
        self.condition(left)
    }

    fn deeper(&mut self, read: impl FnOnce(&mut Self) -> Result<Node, Mistake>) -> Result<Node, Mistake> {
        if self.depth == DEEPEST {
            return Err(self.mistake(&format!("at most {DEEPEST} parentheses and NOT inside one another")));
        }
        self.depth += 1;
        let node = read(self)?;
        self.depth -= 1;
        Ok(node)
    }

    fn condition(&mut self, left: Word) -> Result<Node, Mistake> {
        if let Some(comparison) = self.comparison() {
            return Ok(Node::Compare(left, comparison, self.operand("a value")?));
        }
        if self.takes_word("IS") {
            let is_negated = self.takes_word("NOT");
            if !self.takes_word("NULL") {
                return Err(self.expected("NULL"));
            }
            return Ok(negated(Node::Unset(left), is_negated));
        }
        let is_negated = self.takes_word("NOT");
        let node = if self.takes_word("LIKE") {
            Node::Like(left, self.operand("a pattern in quotes")?)
        } else if self.takes_word("IN") {
            Node::In(left, self.list()?)
        } else if self.takes_word("BETWEEN") {
            let least = self.operand("a value")?;
            if !self.takes_word("AND") {
                return Err(self.expected("AND and the greatest value"));
            }
            Node::Between(left, least, self.operand("a value")?)
        } else {
            let after_not = "LIKE, IN or BETWEEN";
            let any = "a comparison such as =, or LIKE, IN, BETWEEN or IS";
            return Err(self.expected(if is_negated { after_not } else { any }));
        };
        Ok(negated(node, is_negated))
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let (_, Token::Sign(sign)) = self.tokens.first()? else { return None };
        let comparison = Comparison::of_sign(sign)?;
        self.tokens = &self.tokens[1..];
        Some(comparison)
    }

    fn list(&mut self) -> Result<Vec<Word>, Mistake> {
        self.expect_sign("(")?;
        let mut words = vec![self.operand("a value")?];
        while self.takes_sign(",") {
            words.push(self.operand("a value")?);
        }
        self.expect_sign(")")?;
        Ok(words)
    }

    fn operand(&mut self, what: &str) -> Result<Word, Mistake> {
        match self.tokens.split_first() {
            Some(((at, token), rest)) if is_operand(token) => {
                self.tokens = rest;
                Ok(Word { at: *at, token: token.clone() })
            }
            _ => Err(self.expected(what)),
        }
    }

    fn takes_word(&mut self, word: &str) -> bool {
        self.takes(|token| token.is_word(word))
    }

    fn takes_sign(&mut self, sign: &str) -> bool {
        self.takes(|token| matches!(token, Token::Sign(found) if *found == sign))
    }

    fn takes(&mut self, is_it: impl Fn(&Token) -> bool) -> bool {
        let found = self.tokens.first().is_some_and(|(_, token)| is_it(token));
        if found {
            self.tokens = &self.tokens[1..];
        }
        found
    }

    fn expect_sign(&mut self, sign: &str) -> Result<(), Mistake> {
        if self.takes_sign(sign) { Ok(()) } else { Err(self.expected(&format!("'{sign}'"))) }
    }

    fn expected(&self, what: &str) -> Mistake {
        let found = self.tokens.first().map_or_else(|| "the end of the filter".to_owned(), |(_, token)| token.shown());
        self.mistake(&format!("expected {what}, found {found}"))
    }

    fn mistake(&self, message: &str) -> Mistake {
        Mistake::at(self.text, self.tokens.first().map_or(self.text.len(), |(at, _)| *at), message)
    }
}

fn is_operand(token: &Token) -> bool {
    match token {
        Token::Word(word) => !KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(word)),
        Token::Number(_) | Token::Text(_) => true,
        Token::Sign(_) => false,
    }
}

fn single_or(mut terms: Vec<Node>, many: impl FnOnce(Vec<Node>) -> Node) -> Node {
    match terms.len() {
        1 => terms.remove(0),
        _ => many(terms),
    }
}

fn negated(node: Node, is_negated: bool) -> Node {
    if is_negated { Node::Not(Box::new(node)) } else { node }
}
