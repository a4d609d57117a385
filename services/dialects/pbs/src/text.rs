//! Splits lists whose entries may be quoted.

/// The entries between separators outside quotes, with their quotes. Unclosed quotes extend to the end.
pub fn split(text: &str, separator: char) -> Vec<&str> {
    let mut entries = Vec::new();
    let (mut start, mut quote, mut escaped) = (0, None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (None, '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if c == separator => {
                entries.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    entries.push(&text[start..]);
    entries
}

/// The text without blanks around it. A blank that a backslash protects stays.
pub fn trimmed(text: &str) -> &str {
    let text = text.trim_start();
    let short = text.trim_end();
    let is_protected = (short.len() - short.trim_end_matches('\\').len()) % 2 == 1;
    match text[short.len()..].chars().next().filter(|_| is_protected) {
        Some(blank) => &text[..short.len() + blank.len_utf8()],
        None => short,
    }
}

/// The text without its quotes and without the backslashes that protect a character outside them.
pub fn unquoted(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let (mut quote, mut escaped) = (None, false);
    for c in text.chars() {
        match (quote, c) {
            _ if escaped => {
                escaped = false;
                plain.push(c);
            }
            (None, '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            _ => plain.push(c),
        }
    }
    plain
}

/// The text in quotes if one of these characters, a quote, a backslash or a blank is in it.
pub fn quoted(text: &str, special: &[char]) -> String {
    let needs = |c: char| special.contains(&c) || matches!(c, '"' | '\'' | '\\') || c.is_whitespace();
    if !text.is_empty() && !text.contains(needs) {
        return text.to_owned();
    }
    if !text.contains('"') {
        return format!("\"{text}\"");
    }
    if !text.contains('\'') {
        return format!("'{text}'");
    }
    text.chars().flat_map(|c| needs(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Whether the text has an opening quote without a closing one.
pub fn has_open_quote(text: &str) -> bool {
    let (mut quote, mut escaped) = (None, false);
    for c in text.chars() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (None, '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            _ => {}
        }
    }
    quote.is_some()
}

/// A number in decimal digits: `FromStr` of integers also takes a leading `+`.
pub fn decimal<T: std::str::FromStr>(text: &str) -> Option<T> {
    let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_decimal.then(|| text.parse().ok()).flatten()
}

/// Whether the text can be the name of a resource, a property or an attribute: a letter, then letters, digits, `_`, `-`
/// and `.`; at most 128 bytes.
pub fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && text.len() <= 128 && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}
