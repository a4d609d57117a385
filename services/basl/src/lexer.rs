//! Text into tokens.

use crate::{
    fault::{Faults, Position},
    size::Size,
};

/// Characters of an identifier (PBS-X-02).
pub(crate) const LONGEST_NAME: usize = 80;

/// A token's meaning.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// An identifier, a keyword, or the name of a constant.
    Word,
    Int(i64),
    Float(f64),
    Size(Size),
    /// A string with its escapes resolved.
    Text(String),
    /// An operator or a punctuation mark.
    Sign(&'static str),
    /// Text with a mistake, which was told.
    Wrong,
    End,
}

/// A token and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Lexeme<'t> {
    pub(crate) token: Token,
    pub(crate) text: &'t str,
    pub(crate) place: Position,
}

/// Longer signs first.
const SIGNS: [&str; 18] = ["++", "--", "(", ")", "{", "}", ";", ":", "|", ",", "@", "=", "+", "-", "*", "/", "%", "!"];

/// Reads all tokens. The last one is [`Token::End`].
pub(crate) fn tokens<'t>(text: &'t str, faults: &mut Faults) -> Vec<Lexeme<'t>> {
    let mut lexer = Lexer { rest: text, next: Position::START, start: Position::START, faults };
    let mut all = Vec::new();
    loop {
        lexer.skip_blanks();
        let lexeme = lexer.next();
        let is_end = lexeme.token == Token::End;
        all.push(lexeme);
        if is_end {
            return all;
        }
    }
}

struct Lexer<'t, 'f> {
    rest: &'t str,
    /// Where the rest begins.
    next: Position,
    /// Where the token begins that is being read.
    start: Position,
    faults: &'f mut Faults,
}

impl<'t> Lexer<'t, '_> {
    /// Blanks, line ends and comments.
    fn skip_blanks(&mut self) {
        loop {
            let trimmed = self.rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{c}', '\u{b}']);
            self.take(self.rest.len() - trimmed.len());
            if !self.rest.starts_with("//") {
                return;
            }
            self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        self.next = self.next.after(taken);
        taken
    }

    fn next(&mut self) -> Lexeme<'t> {
        self.start = self.next;
        let place = self.start;
        let Some(first) = self.rest.chars().next() else {
            return Lexeme { token: Token::End, text: "end of file", place };
        };
        let (token, text) = match first {
            'a'..='z' | 'A'..='Z' | '_' => self.word(),
            '0'..='9' => self.number(),
            '"' => self.string(),
            _ => self.sign(first),
        };
        Lexeme { token, text, place }
    }

    /// Letters, digits and underscores.
    fn run(&mut self) -> &'t str {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        self.take(self.rest.find(|letter| !is_part(letter)).unwrap_or(self.rest.len()))
    }

    fn word(&mut self) -> (Token, &'t str) {
        let word = self.run();
        if word.len() > LONGEST_NAME {
            self.faults.add(self.start, word, format!("a name has a maximum of {LONGEST_NAME} characters"));
            return (Token::Wrong, word);
        }
        (Token::Word, word)
    }

    fn number(&mut self) -> (Token, &'t str) {
        let start = self.rest;
        let whole = self.run();
        if whole.bytes().all(|byte| byte.is_ascii_digit()) && self.rest.starts_with('.') {
            self.take(1);
            self.run();
        }
        let text = &start[..start.len() - self.rest.len()];
        let is_float = text.contains('.') && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let value = if is_float {
            text.parse().ok().filter(|value: &f64| value.is_finite()).map(Token::Float)
        } else if text.bytes().all(|byte| byte.is_ascii_digit()) {
            text.parse().ok().map(Token::Int)
        } else if text.ends_with(['b', 'B', 'w', 'W']) {
            Size::parse(text).map(Token::Size)
        } else {
            None
        };
        let token = value.unwrap_or_else(|| {
            self.faults.add(self.start, text, "expected a number such as 5 or 4.3, or a size such as 10kb");
            Token::Wrong
        });
        (token, text)
    }

    /// A string ends on its line. `\n`, `\t`, `\"` and `\\` are as in C, because PBS translated programs to C.
    fn string(&mut self) -> (Token, &'t str) {
        let mut value = String::new();
        let mut letters = self.rest.char_indices().skip(1);
        while let Some((place, letter)) = letters.next() {
            match letter {
                '"' => return (Token::Text(value), self.take(place + 1)),
                '\n' => break,
                '\\' => match letters.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, 't')) => value.push('\t'),
                    Some((_, letter @ ('"' | '\\'))) => value.push(letter),
                    Some((_, letter)) if letter != '\n' => value.extend(['\\', letter]),
                    _ => break,
                },
                _ => value.push(letter),
            }
        }
        let text = self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        self.faults.add(self.start, text, "a string lacks its closing quote");
        (Token::Wrong, text)
    }

    fn sign(&mut self, first: char) -> (Token, &'t str) {
        if let Some(sign) = SIGNS.into_iter().find(|sign| self.rest.starts_with(sign)) {
            return (Token::Sign(sign), self.take(sign.len()));
        }
        let text = self.take(first.len_utf8());
        self.faults.add(self.start, text, other_spelling(first));
        (Token::Wrong, text)
    }
}

/// Operators of other languages are words in this one.
fn other_spelling(sign: char) -> &'static str {
    match sign {
        '<' => "unexpected character; less is written LT or LE",
        '>' => "unexpected character; greater is written GT or GE",
        '&' => "unexpected character; both is written AND",
        '\'' => "unexpected character; strings have double quotes",
        '#' => "unexpected character; comments start with //",
        _ => "unexpected character",
    }
}
