//! The words and signs of a filter.

use crate::{mistake::Mistake, text::shown};

/// The longest filter, in bytes.
pub const LONGEST: usize = 16_384;

/// A word, sign or literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// A name or a keyword.
    Word(String),
    /// A whole number.
    Number(i64),
    /// A text in quotes, without them.
    Text(String),
    /// A sign, such as `<=`.
    Sign(&'static str),
}

impl Token {
    /// The token as messages repeat it.
    pub fn shown(&self) -> String {
        match self {
            Self::Word(word) => format!("'{}'", shown(word)),
            Self::Number(number) => format!("'{number}'"),
            Self::Text(text) => format!("the text '{}'", shown(text)),
            Self::Sign(sign) => format!("'{sign}'"),
        }
    }

    /// Whether it is this keyword, in any case.
    pub fn is_word(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(keyword))
    }
}

/// Longer ones first.
const SIGNS: [&str; 11] = ["<>", "<=", ">=", "!=", "==", "=", "<", ">", "(", ")", ","];

/// The tokens of a filter, each with the byte at which it begins.
///
/// # Errors
/// A filter that is too long, a quote that is not closed, a number that is too large, or a character of no token.
pub fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Mistake> {
    if text.len() > LONGEST {
        return Err(Mistake::at(text, 0, format!("a filter has at most {LONGEST} bytes")));
    }
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (token, length) = token(text, at, first)?;
        tokens.push((at, token));
        at += length;
    }
    Ok(tokens)
}

/// The token at a place, and its length in bytes.
fn token(text: &str, at: usize, first: char) -> Result<(Token, usize), Mistake> {
    let rest = &text[at..];
    if first == '\'' || first == '"' {
        return quoted(text, at, first);
    }
    if first.is_ascii_digit() || (first == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
        return number(text, at);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let word = leading(rest, |c| c.is_ascii_alphanumeric() || c == '_');
        return Ok((Token::Word(word.to_owned()), word.len()));
    }
    match SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
        Some("==") => Err(Mistake::at(text, at, "'==' is no comparison; is '=' meant?")),
        Some(sign) => Ok((Token::Sign(sign), sign.len())),
        None => Err(Mistake::at(text, at, format!("'{}' has no meaning here", shown(&first.to_string())))),
    }
}

/// A text in quotes. A doubled quote stands for one.
fn quoted(text: &str, at: usize, quote: char) -> Result<(Token, usize), Mistake> {
    let mut content = String::new();
    let mut rest = text[at + 1..].char_indices().peekable();
    while let Some((place, character)) = rest.next() {
        if character != quote {
            content.push(character);
        } else if rest.next_if(|(_, next)| *next == quote).is_some() {
            content.push(quote);
        } else {
            return Ok((Token::Text(content), place + 2));
        }
    }
    Err(Mistake::at(text, at, format!("the quote {quote} is not closed")))
}

fn number(text: &str, at: usize) -> Result<(Token, usize), Mistake> {
    let rest = &text[at..];
    let digits = leading(&rest[1..], |c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    let word = &rest[..=digits.len()];
    match word.parse() {
        Ok(number) => Ok((Token::Number(number), word.len())),
        Err(_) => Err(Mistake::at(text, at, format!("'{}' is no whole number of 64 bits", shown(word)))),
    }
}

fn leading(text: &str, belongs: impl Fn(char) -> bool) -> &str {
    text.split_once(|c| !belongs(c)).map_or(text, |(word, _)| word)
}
