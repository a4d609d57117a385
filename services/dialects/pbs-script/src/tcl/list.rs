//! Tcl lists on one line (PBS-X-16).

/// A list as a line: newlines are escaped, and so are backslashes.
pub fn line(words: &[String]) -> String {
    let list = join(words);
    let mut line = String::with_capacity(list.len());
    for letter in list.chars() {
        match letter {
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            other => line.push(other),
        }
    }
    line
}

/// The list of a line; `None` if it is none.
pub fn words_of(line: &str) -> Option<Vec<String>> {
    let mut list = String::with_capacity(line.len());
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next()? {
                '\\' => list.push('\\'),
                'n' => list.push('\n'),
                'r' => list.push('\r'),
                _ => return None,
            },
            other => list.push(other),
        }
    }
    split(&list)
}

/// A list, as `list` makes it.
pub fn join(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    if word.is_empty() {
        return "{}".into();
    }
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-+./:,=@%^~'!?<>*&|()".contains(letter);
    if word.chars().all(is_plain) {
        return word.to_owned();
    }
    if can_be_braced(word) {
        return format!("{{{word}}}");
    }
    let mut text = String::with_capacity(word.len() * 2);
    for letter in word.chars() {
        match letter {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            other if is_plain(other) => text.push(other),
            // Other controls stay as they are: a backslash makes no word of them.
            other if other.is_control() => text.push(other),
            other => text.extend(['\\', other]),
        }
    }
    text
}

/// Whether a word means itself in braces: they are balanced, and no backslash takes part.
fn can_be_braced(word: &str) -> bool {
    let mut depth = 0_usize;
    for letter in word.chars() {
        match letter {
            '\\' => return false,
            '{' => depth += 1,
            '}' if depth == 0 => return false,
            '}' => depth -= 1,
            _ => {}
        }
    }
    depth == 0
}

/// The words of a list; `None` if it is none.
pub fn split(list: &str) -> Option<Vec<String>> {
    let mut rest = list;
    let mut words = Vec::new();
    loop {
        rest = rest.trim_start_matches(is_space);
        let Some(first) = rest.chars().next() else { return Some(words) };
        let (word, after) = match first {
            '{' => braced(rest.get(1..)?)?,
            '"' => until(rest.get(1..)?, |letter| letter == '"', true)?,
            _ => until(rest, is_space, false)?,
        };
        if after.chars().next().is_some_and(|next| !is_space(next)) {
            return None;
        }
        words.push(word);
        rest = after;
    }
}

fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// A word behind an opening brace, and what follows its end.
fn braced(text: &str) -> Option<(String, &str)> {
    let mut depth = 1_usize;
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => {
                letters.next();
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((text.get(..at)?.to_owned(), text.get(at + 1..)?));
        }
    }
    None
}

/// A word up to its end, with backslashes replaced, and what follows.
fn until(text: &str, is_end: impl Fn(char) -> bool, is_end_needed: bool) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut rest = text;
    loop {
        let mut letters = rest.chars();
        match letters.next() {
            None => return (!is_end_needed).then_some((word, rest)),
            Some(letter) if is_end(letter) => {
                return Some((word, if is_end_needed { letters.as_str() } else { rest }));
            }
            Some('\\') => {
                let (letter, after) = escape(letters.as_str());
                word.push(letter);
                rest = after;
            }
            Some(letter) => {
                word.push(letter);
                rest = letters.as_str();
            }
        }
    }
}

/// What a backslash and the text behind it mean.
fn escape(text: &str) -> (char, &str) {
    let mut letters = text.chars();
    let Some(first) = letters.next() else { return ('\\', text) };
    let after = letters.as_str();
    match first {
        'a' => ('\u{7}', after),
        'b' => ('\u{8}', after),
        'f' => ('\u{c}', after),
        'n' => ('\n', after),
        'r' => ('\r', after),
        't' => ('\t', after),
        'v' => ('\u{b}', after),
        '\n' => (' ', after.trim_start_matches([' ', '\t'])),
        'x' => number(after, 16, 2).unwrap_or(('x', after)),
        'u' => number(after, 16, 4).unwrap_or(('u', after)),
        'U' => number(after, 16, 8).unwrap_or(('U', after)),
        '0'..='7' => number(text, 8, 3).unwrap_or((first, after)),
        other => (other, after),
    }
}

fn number(text: &str, base: u32, most: usize) -> Option<(char, &str)> {
    let length = text.chars().take(most).take_while(|letter| letter.is_digit(base)).count();
    let value = u32::from_str_radix(text.get(..length)?, base).ok()?;
    Some((char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER), text.get(length..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_tcl_does() {
        for (word, text) in [
            ("", "{}"),
            ("a b", "{a b}"),
            ("a{", "a\\{"),
            ("a\\b", "a\\\\b"),
            ("#", "{#}"),
            ("Resource_List:cput", "Resource_List:cput"),
        ] {
            assert_eq!(join(&[word.to_owned()]), text);
            assert_eq!(split(text), Some(vec![word.to_owned()]));
        }
    }

    #[test]
    fn lists_of_all_forms_are_read() {
        assert_eq!(
            split(" a {b {c} \\} d} \"e f\\n\" \\x41\\u00e9\\101 "),
            Some(["a", "b {c} \\} d", "e f\n", "A\u{e9}A"].map(str::to_owned).into())
        );
        for bad in ["{a", "\"a", "{a}b", "\"a\"b"] {
            assert_eq!(split(bad), None, "{bad}");
        }
    }
}
