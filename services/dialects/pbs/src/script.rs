//! Job scripts: whether they can be submitted, and the options in their directives.

use crate::refusal::{Refusal, shown};

/// The beginning of a directive if neither option nor variable says otherwise.
pub const PREFIX: &str = "#PBS";
/// The variable with another beginning.
pub const PREFIX_VARIABLE: &str = "PBS_DPREFIX";

/// The beginning of directives: that of `-C`, else that of the variable, else [`PREFIX`]. `None` if an empty one turns
/// directives off.
pub fn prefix<'a>(option: Option<&'a str>, variable: Option<&'a str>) -> Option<&'a str> {
    Some(option.or(variable).unwrap_or(PREFIX)).filter(|prefix| !prefix.is_empty())
}

/// The text of a script, if it can be submitted.
///
/// # Errors
/// Why it cannot be submitted.
pub fn check(bytes: &[u8]) -> Result<&str, Refusal> {
    let script = |why: &str| Err(Refusal::Script(why.to_owned()));
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return script("the script is empty");
    }
    if bytes.contains(&0) {
        return script("the script has a NUL byte: it is not a text file");
    }
    if bytes.windows(2).any(|pair| pair == b"\r\n") {
        return script("the script has DOS line ends; dos2unix removes them");
    }
    std::str::from_utf8(bytes).map_err(|_| Refusal::Script("the script is not UTF-8 text".to_owned()))
}

/// A directive of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// Its line, from 1.
    pub line: usize,
    /// Its words, without quotes.
    pub words: Vec<String>,
}

/// The directives of a script: lines that begin with the prefix, after blanks, up to the first line that is neither blank
/// nor a comment. A line that begins with a colon is a comment too.
///
/// # Errors
/// A quote that is not closed.
pub fn directives(text: &str, prefix: &str) -> Result<Vec<Directive>, Refusal> {
    let mut directives = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.trim_start();
        if let Some(rest) = content.strip_prefix(prefix).filter(|rest| is_separate(rest)) {
            directives.push(Directive { line, words: words(rest, line)? });
            continue;
        }
        if !(content.is_empty() || content.starts_with('#') || content.starts_with(':')) {
            break;
        }
    }
    Ok(directives)
}

/// Whether what follows the prefix is not the rest of a longer word.
fn is_separate(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || c == '-')
}

/// The words of a line or a variable. Blanks separate, quotes group, a backslash protects the next character, and a `#`
/// at the beginning of a word begins a comment.
///
/// # Errors
/// A quote that is not closed; `line` is where, 0 in a variable.
pub fn words(text: &str, line: usize) -> Result<Vec<String>, Refusal> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                // Its value may be a list whose entries the quotes hold together.
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(characters.next()),
            (None, '#') if word.is_none() => break,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    match quote {
        Some(quote) => {
            let place = if line > 0 { format!("line {line}: ") } else { String::new() };
            Err(Refusal::Script(format!("{place}unmatched {quote} in `{}`", shown(text.trim()))))
        }
        None => {
            words.extend(word);
            Ok(words)
        }
    }
}
