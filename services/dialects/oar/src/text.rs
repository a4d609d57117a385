//! Small readers and writers that several files need.

/// The longest part of a user's word that a message repeats, in characters.
const MOST_SHOWN: usize = 60;

/// The greatest number of edits between an unknown word and the one that is suggested.
const MOST_EDITS: usize = 2;

/// The longest word, in bytes, that is compared with known ones.
const LONGEST_COMPARED: usize = 64;

/// The character in tables and messages: `?` for one that controls a terminal, is invisible, or turns the direction of
/// writing.
pub fn printable(character: char) -> char {
    let is_invisible =
        matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    if character.is_control() || is_invisible { '?' } else { character }
}

/// A word as messages repeat it: cut to a readable length, each character printable.
pub fn shown(word: &str) -> String {
    let mut text: String = word.chars().take(MOST_SHOWN).map(printable).collect();
    if word.chars().nth(MOST_SHOWN).is_some() {
        text.push_str("...");
    }
    text
}

/// A number in decimal digits: `FromStr` of integers also takes a leading `+`.
pub fn decimal<T: std::str::FromStr>(text: &str) -> Option<T> {
    let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_decimal.then(|| text.parse().ok()).flatten()
}

/// Whether the text can name a property, a level, a type or a queue: a letter or `_`, then letters, digits, `_` and
/// `-`; at most 64 bytes.
pub fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins
        && text.len() <= LONGEST_COMPARED
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// The known word that is nearest to a word, at most two edits away, not counting case.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > LONGEST_COMPARED {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let letters = word.chars().count();
    let distances = known.into_iter().filter(|known| known.len() <= LONGEST_COMPARED);
    let distances = distances.map(|known| (strsim::osa_distance(&word, &known.to_ascii_lowercase()), known));
    // If every letter differs, the words have nothing in common.
    let close = distances.filter(|(edits, _)| *edits <= MOST_EDITS && *edits < letters);
    close.min_by_key(|(edits, _)| *edits).map(|(_, known)| known)
}

/// `; is 'x' meant?` for the nearest known word; empty if none is near.
pub fn suggestion<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest(word, known).map_or_else(String::new, |known| format!("; is '{known}' meant?"))
}

/// Seconds as `h:m:s`, each number without leading zeros, as `OAR_JOB_WALLTIME` has them.
pub fn hours(seconds: i64) -> String {
    format!("{}:{}:{}", seconds / 3600, seconds % 3600 / 60, seconds % 60)
}
