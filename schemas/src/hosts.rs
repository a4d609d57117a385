//! Lists of node names with ranges: `node[001-100,200],login1`.

use std::fmt::Write;

/// Maximum number of nodes in a list: protects from `n[1-4000000000]`.
const MOST_NODES: usize = 1_000_000;

/// Maximum number of digits that count as a number; a longer row of digits belongs to the name's stem.
const MOST_DIGITS: usize = 18;

/// The text is not a list of node names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostlistError {
    /// An unmatched bracket, or one inside another.
    #[error("the brackets in `{0}` do not match")]
    Brackets(String),
    /// Two commas in a row, or one at an end.
    #[error("`{0}` has an empty name")]
    EmptyName(String),
    /// Something other than a number or an ascending range between brackets.
    #[error("`{0}` is not a number or range such as 01-16")]
    Range(String),
    /// More names than any cluster has.
    #[error("the list names more than 1000000 nodes")]
    TooMany,
}

/// The names in a list such as `n[1-3],rack[1-2]m[08-10]`, in the order written. A range keeps the width of its first
/// number; with several brackets, the last one counts fastest. The empty text is the empty list.
///
/// # Errors
/// Unmatched brackets, empty names, invalid ranges, more than 1,000,000 names.
pub fn expand(text: &str) -> Result<Vec<String>, HostlistError> {
    let mut names = Vec::new();
    if text.is_empty() {
        return Ok(names);
    }
    for part in split(text)? {
        expand_part(part, String::new(), &mut names)?;
    }
    Ok(names)
}

/// The parts between commas outside of brackets.
fn split(text: &str) -> Result<Vec<&str>, HostlistError> {
    let mut parts = Vec::new();
    let (mut start, mut inside) = (0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' if !inside => inside = true,
            b']' if inside => inside = false,
            b'[' | b']' => return Err(HostlistError::Brackets(shorten(text))),
            b',' if !inside => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err(HostlistError::Brackets(shorten(text)));
    }
    parts.push(&text[start..]);
    if parts.iter().any(|part| part.is_empty()) {
        return Err(HostlistError::EmptyName(shorten(text)));
    }
    Ok(parts)
}

/// Appends `prefix` + each expansion of `rest` to the names. The brackets of `rest` match and are not nested.
fn expand_part(rest: &str, prefix: String, names: &mut Vec<String>) -> Result<(), HostlistError> {
    let brackets = rest.split_once('[').and_then(|(before, tail)| Some((before, tail.split_once(']')?)));
    let Some((before, (ranges, after))) = brackets else {
        if names.len() >= MOST_NODES {
            return Err(HostlistError::TooMany);
        }
        names.push(prefix + rest);
        return Ok(());
    };
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let numbers = number(first).zip(number(last)).filter(|(first, last)| first <= last);
        let (from, to) = numbers.ok_or_else(|| HostlistError::Range(shorten(range)))?;
        let width = first.len();
        for index in from..=to {
            expand_part(after, format!("{prefix}{before}{index:0width$}"), names)?;
        }
    }
    Ok(())
}

/// The number in a text of digits only; `None` if there are too many.
fn number(text: &str) -> Option<u64> {
    let digits = (1..=MOST_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// The names as a list with ranges, in their order: `a1 a2 a4 b` is `a[1-2,4],b`. Only neighbours are joined.
pub fn compress<S: AsRef<str>>(names: &[S]) -> String {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for name in names {
        let (stem, digits) = split_number(name.as_ref());
        match groups.last_mut() {
            Some(group) if group.takes(stem, digits) => group.numbers.push(digits),
            _ => groups.push(Group { stem, numbers: vec![digits] }),
        }
    }
    let texts: Vec<String> = groups.iter().map(Group::text).collect();
    texts.join(",")
}

/// Like [`compress`], with the names in numeric order and each once, as the node list of a job is shown.
pub fn compress_sorted<S: AsRef<str>>(names: &[S]) -> String {
    let mut names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    sort(&mut names);
    names.dedup();
    compress(&names)
}

/// Puts names in the order in which nodes are listed: by stem, then by number, then by text.
pub fn sort<S: AsRef<str>>(names: &mut [S]) {
    names.sort_by(|left, right| order_key(left.as_ref()).cmp(&order_key(right.as_ref())));
}

fn order_key(name: &str) -> (&str, Option<u64>, &str) {
    let (stem, digits) = split_number(name);
    (stem, number(digits), name)
}

/// A name's stem and the digits at its end; without digits, or with too many, the stem is the whole name. A name that
/// looks like a list itself is not split.
fn split_number(name: &str) -> (&str, &str) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &name[stem.len()..];
    if digits.len() <= MOST_DIGITS { (stem, digits) } else { (name, "") }
}

/// Names with one stem and widths that go into one bracket.
struct Group<'a> {
    stem: &'a str,
    numbers: Vec<&'a str>,
}

impl Group<'_> {
    fn takes(&self, stem: &str, digits: &str) -> bool {
        let last = self.numbers[self.numbers.len() - 1];
        !digits.is_empty() && !last.is_empty() && self.stem == stem && (fits(last, digits) || fits(digits, last))
    }

    fn text(&self) -> String {
        if let [only] = self.numbers[..] {
            return format!("{}{only}", self.stem);
        }
        let mut ranges: Vec<(&str, &str)> = Vec::new();
        for digits in &self.numbers {
            match ranges.last_mut() {
                Some((first, last)) if follows(last, digits) && fits(first, digits) => *last = digits,
                _ => ranges.push((digits, digits)),
            }
        }
        let mut text = format!("{}[", self.stem);
        for (at, (first, last)) in ranges.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let result =
                if first == last { write!(text, "{comma}{first}") } else { write!(text, "{comma}{first}-{last}") };
            debug_assert!(result.is_ok(), "writing to a string never fails");
        }
        text + "]"
    }
}

/// Whether a number written with the width of `first` reads as `digits`.
fn fits(first: &str, digits: &str) -> bool {
    number(digits).is_some_and(|value| format!("{value:0width$}", width = first.len()) == digits)
}

fn follows(last: &str, digits: &str) -> bool {
    number(last).map(|value| value + 1) == number(digits)
}

/// The beginning of a text, for messages.
fn shorten(text: &str) -> String {
    text.chars().take(80).collect()
}
