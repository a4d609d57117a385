//! Lengths of time, sizes and points in time (PBS-Q-08).

use crate::text::decimal;
use jiff::{ToSpan, Zoned, civil};
use muster_schemas::time::Timestamp;
use std::fmt;

/// Reads `SS`, `MM:SS`, `HH:MM:SS` or `DD:HH:MM:SS`, the seconds with an optional fraction, which is rounded. `None`
/// for anything else.
pub fn parse_seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) || (fraction.is_empty() && whole.len() != text.len()) {
        return None;
    }
    let parts: Vec<u64> = whole.split(':').map(decimal).collect::<Option<_>>()?;
    let units: &[u64] = match parts.len() {
        1 => &[1],
        2 => &[60, 1],
        3 => &[3_600, 60, 1],
        4 => &[86_400, 3_600, 60, 1],
        _ => return None,
    };
    let rounded = u64::from(fraction.starts_with(|c: char| c >= '5'));
    let sum = parts.iter().zip(units).try_fold(0u64, |sum, (part, unit)| sum.checked_add(part.checked_mul(*unit)?))?;
    sum.checked_add(rounded)
}

/// Seconds as all members of the family print them: `HH:MM:SS`.
pub fn show_seconds(seconds: u64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// The letters of the units, by their power of 1024.
const UNITS: [&str; 6] = ["", "k", "m", "g", "t", "p"];

/// An amount of memory or disk: an integer, an optional unit `k` to `p`, and an optional `b` for bytes or `w` for words
/// of 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    number: u64,
    power: u8,
    is_words: bool,
}

impl Size {
    /// Reads a size, in any case; `None` for anything else, and for more than fits into 64 bits of bytes.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let suffix = text[digits.len()..].to_ascii_lowercase();
        let (unit, is_words) = match suffix.strip_suffix('w') {
            Some(unit) => (unit, true),
            None => (suffix.strip_suffix('b').unwrap_or(&suffix), false),
        };
        let power = u8::try_from(UNITS.iter().position(|known| *known == unit)?).ok()?;
        let size = Self { number: decimal(digits)?, power, is_words };
        size.checked_bytes().map(|_| size)
    }

    fn checked_bytes(self) -> Option<u64> {
        let words = if self.is_words { 8 } else { 1 };
        self.number.checked_mul(1024u64.checked_pow(u32::from(self.power))?)?.checked_mul(words)
    }

    /// Its bytes.
    pub fn bytes(self) -> u64 {
        self.checked_bytes().unwrap_or(u64::MAX)
    }

    /// Its kilobytes, by which sizes are compared: a plain byte count is rounded down.
    pub fn kilobytes(self) -> u64 {
        self.bytes() / 1024
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.get(usize::from(self.power)).copied().unwrap_or_default();
        write!(f, "{}{unit}{}", self.number, if self.is_words { 'w' } else { 'b' })
    }
}

/// Bytes as servers print used memory: `123kb`.
pub fn show_kilobytes(bytes: u64) -> String {
    format!("{}kb", bytes.div_ceil(1024))
}

/// Reads `[[[[CC]YY]MM]DD]hhmm[.SS]`. Missing parts are those of `now`; if the point has passed then, it is in the next
/// day, month or year. `None` for anything else.
pub fn parse_date_time(text: &str, now: &Zoned) -> Option<Timestamp> {
    let (digits, seconds) = match text.split_once('.') {
        None => (text, 0),
        Some((digits, seconds)) => (digits, decimal::<i8>(seconds).filter(|_| seconds.len() == 2)?),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || !matches!(digits.len(), 4 | 6 | 8 | 10 | 12) {
        return None;
    }
    let from_end = |end: usize, length: usize| {
        let end = digits.len().checked_sub(end)?;
        digits.get(end.checked_sub(length)?..end)?.parse::<i16>().ok()
    };
    let two = |end| from_end(end, 2).and_then(|number| i8::try_from(number).ok());
    let time = civil::Time::new(two(2)?, two(0)?, seconds, 0).ok()?;
    let year = match digits.len() {
        12 => from_end(8, 4),
        10 => from_end(8, 2).map(|year| if year > 68 { 1900 + year } else { 2000 + year }),
        _ => None,
    };
    let (month, day) = (two(6), two(4));
    let date =
        civil::Date::new(year.unwrap_or(now.year()), month.unwrap_or(now.month()), day.unwrap_or(now.day())).ok()?;
    let at = date.to_datetime(time);
    let is_past = at < now.datetime();
    let next = match (year, month, day) {
        _ if !is_past => at,
        (Some(_), ..) => at,
        (None, Some(_), _) => at.checked_add(1.year()).ok()?,
        (None, None, Some(_)) => at.checked_add(1.month()).ok()?,
        (None, None, None) => at.checked_add(1.day()).ok()?,
    };
    Some(Timestamp(next.to_zoned(now.time_zone().clone()).ok()?.timestamp().as_microsecond()))
}
