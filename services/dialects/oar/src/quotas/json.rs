//! JSON with the place of each value, so that a mistake in a rule file can be shown where it is.

use crate::text::shown;

/// The deepest nesting.
const DEEPEST: usize = 16;

/// A value and the byte at which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The byte at which it begins.
    pub at: usize,
    /// The value.
    pub value: Json,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`, `true` or `false`.
    Word(&'static str),
    /// A number, as it is written.
    Number(String),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Names, each with the byte at which it begins, and their values, in order.
    Object(Vec<(usize, String, Node)>),
}

/// A mistake, and the byte at which it is.
pub type Wrong = (usize, String);

/// Reads a text.
///
/// # Errors
/// The first mistake; a name that is given twice is one.
pub fn read(text: &str) -> Result<Node, Wrong> {
    let mut reader = Reader { text, at: 0 };
    let node = reader.value(0)?;
    reader.skip_blanks();
    match reader.rest() {
        "" => Ok(node),
        _ => Err(reader.expected("the end of the file")),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn value(&mut self, depth: usize) -> Result<Node, Wrong> {
        self.skip_blanks();
        let at = self.at;
        if depth > DEEPEST {
            return Err((at, format!("values are nested more than {DEEPEST} times")));
        }
        let value = match self.rest().bytes().next() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Json::Text(self.text()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { at, value })
    }

    fn object(&mut self, depth: usize) -> Result<Json, Wrong> {
        let mut entries: Vec<(usize, String, Node)> = Vec::new();
        let mut names = std::collections::BTreeSet::new();
        self.at += 1;
        if self.takes('}') {
            return Ok(Json::Object(entries));
        }
        loop {
            self.skip_blanks();
            let at = self.at;
            if !self.rest().starts_with('"') {
                return Err(self.expected("a name in double quotes"));
            }
            let name = self.text()?;
            if !names.insert(name.clone()) {
                return Err((at, format!("the name '{}' is given twice", shown(&name))));
            }
            if !self.takes(':') {
                return Err(self.expected("':'"));
            }
            entries.push((at, name, self.value(depth + 1)?));
            if self.takes('}') {
                return Ok(Json::Object(entries));
            }
            if !self.takes(',') {
                return Err(self.expected("',' or '}'"));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json, Wrong> {
        let mut entries = Vec::new();
        self.at += 1;
        if self.takes(']') {
            return Ok(Json::List(entries));
        }
        loop {
            entries.push(self.value(depth + 1)?);
            if self.takes(']') {
                return Ok(Json::List(entries));
            }
            if !self.takes(',') {
                return Err(self.expected("',' or ']'"));
            }
        }
    }

    /// A text. Its end is found here; what it says is left to `serde_json`.
    fn text(&mut self) -> Result<String, Wrong> {
        let begin = self.at;
        let mut is_escaped = false;
        let end = self.rest().char_indices().skip(1).find(|(_, character)| {
            let is_end = *character == '"' && !is_escaped;
            is_escaped = *character == '\\' && !is_escaped;
            is_end
        });
        let Some((length, _)) = end else { return Err((begin, "the quote is not closed".to_owned())) };
        self.at = begin + length + 1;
        serde_json::from_str(&self.text[begin..self.at])
            .map_err(|_| (begin, "the text has a wrong character".to_owned()))
    }

    fn number(&mut self) -> Result<Json, Wrong> {
        let word = self.leading(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'));
        if serde_json::from_str::<serde_json::Number>(word).is_err() {
            return Err((self.at, format!("'{}' is no number", shown(word))));
        }
        self.at += word.len();
        Ok(Json::Number(word.to_owned()))
    }

    fn word(&mut self) -> Result<Json, Wrong> {
        let word = self.leading(|c| c.is_ascii_alphanumeric());
        let Some(known) = ["null", "true", "false"].into_iter().find(|known| *known == word) else {
            return Err(self.expected("a value"));
        };
        self.at += word.len();
        Ok(Json::Word(known))
    }

    fn takes(&mut self, sign: char) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(sign);
        self.at += usize::from(found);
        found
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn leading(&self, belongs: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        rest.split_once(|c| !belongs(c)).map_or(rest, |(word, _)| word)
    }

    fn expected(&self, what: &str) -> Wrong {
        let found = match self.rest().chars().next() {
            None => "the end of the file".to_owned(),
            Some(character) => format!("'{}'", shown(&character.to_string())),
        };
        (self.at, format!("expected {what}, found {found}"))
    }
}
