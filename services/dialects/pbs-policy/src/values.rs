//! The values of options and resources (PBS-Q-08).

use std::fmt;

const BYTES_OF_WORD: u128 = 8;
const KILOBYTE: u128 = 1024;

/// The words for true and false (PBS-F-01).
pub const BOOLEANS: [&str; 8] = ["true", "false", "yes", "no", "on", "off", "1", "0"];

/// Reads `true`, `yes`, `on`, `1` and their opposites, in any case; `None` for anything else.
pub fn boolean(text: &str) -> Option<bool> {
    let place = BOOLEANS.iter().position(|word| word.eq_ignore_ascii_case(text))?;
    Some(place.is_multiple_of(2))
}

/// Reads `HH:MM:SS`, `MM:SS` or `SS` as seconds; `None` for anything else. As in PBS, each part may have any number of
/// digits, so `90:00` is an hour and a half.
pub fn seconds(text: &str) -> Option<u64> {
    let parts: Vec<u64> = text.splitn(4, ':').map(decimal).collect::<Option<_>>()?;
    let units: &[u64] = match parts.len() {
        1 => &[1],
        2 => &[60, 1],
        3 => &[3600, 60, 1],
        _ => return None,
    };
    parts.iter().zip(units).try_fold(0u64, |sum, (part, unit)| sum.checked_add(part.checked_mul(*unit)?))
}

/// Seconds as `HH:MM:SS`.
pub fn show_seconds(seconds: u64) -> String {
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Reads a size: digits, then a unit `k`, `m`, `g` or `t` if any, then `b` for bytes (the default) or `w` for words of
/// 8 bytes, in any case. The result is in kilobytes, rounded down; `None` for anything else.
pub fn kilobytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number = u128::from(decimal(digits)?);
    let suffix = text[digits.len()..].to_ascii_lowercase();
    let (unit, word) = match suffix.strip_suffix(['b', 'w']) {
        Some(unit) => (unit, if suffix.ends_with('w') { BYTES_OF_WORD } else { 1 }),
        None => (suffix.as_str(), 1),
    };
    let power = match unit {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    let bytes = number.checked_mul(KILOBYTE.pow(power))?.checked_mul(word)?;
    u64::try_from(bytes / KILOBYTE).ok()
}

/// Reads digits; `None` for anything else, or a number of more than 64 bits.
pub fn decimal(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// A number with up to six decimals. Sums and comparisons are exact, so equal loads are equal (PBS-C-12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal {
    millionths: u64,
}

impl Decimal {
    const ONE: u64 = 1_000_000;
    const DIGITS: usize = 6;

    /// A whole number.
    pub fn whole(number: u32) -> Self {
        Self { millionths: u64::from(number) * Self::ONE }
    }

    /// A number in millionths.
    pub const fn from_millionths(millionths: u64) -> Self {
        Self { millionths }
    }

    /// This number in millionths.
    pub const fn millionths(self) -> u64 {
        self.millionths
    }

    /// Reads digits with a point, such as `50`, `1.25` or `.5`; further decimals than six are cut. `None` for anything
    /// else, or a number that is too large.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        if whole.is_empty() && decimals.is_empty() || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let whole = if whole.is_empty() { 0 } else { decimal(whole)? };
        let cut = &decimals[..decimals.len().min(Self::DIGITS)];
        let part = decimal(&format!("{cut:0<width$}", width = Self::DIGITS))?;
        Some(Self { millionths: whole.checked_mul(Self::ONE)?.checked_add(part)? })
    }

    /// The sum, or the largest number if it is too large.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { millionths: self.millionths.saturating_add(other.millionths) }
    }
}

impl fmt::Display for Decimal {
    /// With the decimals that are not zero: `64`, `1.25`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.millionths / Self::ONE, self.millionths % Self::ONE);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}
