//! Amounts of memory as programs write them: a number with a multiplier and a unit, `10kb`, `2mw`.

use std::{cmp::Ordering, fmt};

/// Bytes of a word, as PBS counted them.
const BYTES_OF_WORD: i128 = 4;
/// The letters of the multipliers: each is 1024 times the one before.
const MULTIPLIERS: &str = "kmgtp";

/// An amount. Its number has fewer than 60 bits, so that it fits into one register with the suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    number: i64,
    /// The power of 1024: 0 to 5.
    exponent: u8,
    is_words: bool,
}

impl Size {
    /// The amount for "not known".
    pub(crate) const UNSET: Self = Self { number: -1, exponent: 0, is_words: false };

    /// An amount, if its number is within the range.
    pub(crate) fn new(number: i128, exponent: u8, is_words: bool) -> Option<Self> {
        let number = i64::try_from(number).ok()?;
        let is_small = number.unsigned_abs() < 1 << 59;
        (is_small && usize::from(exponent) <= MULTIPLIERS.len()).then_some(Self { number, exponent, is_words })
    }

    /// Reads `10kb`, `2mw`, `-1b`; with neither multiplier nor unit these are bytes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let end = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let mut letters = suffix.chars().map(|letter| letter.to_ascii_lowercase()).peekable();
        let mut exponent = 0;
        if let Some(place) = letters.peek().and_then(|letter| MULTIPLIERS.find(*letter)) {
            exponent = u8::try_from(place + 1).ok()?;
            letters.next();
        }
        let is_words = match letters.next() {
            None | Some('b') => false,
            Some('w') => true,
            Some(_) => return None,
        };
        letters.next().is_none().then_some(())?;
        Self::new(number.parse().ok()?, exponent, is_words)
    }

    /// The register that holds it.
    pub(crate) const fn to_word(self) -> i64 {
        (self.number << 4) | ((self.exponent as i64) << 1) | (self.is_words as i64)
    }

    /// What a register holds.
    pub(crate) const fn from_word(word: i64) -> Self {
        Self { number: word >> 4, exponent: ((word >> 1) & 7) as u8, is_words: word & 1 == 1 }
    }

    /// Fewer than 2^112.
    fn bytes(self) -> i128 {
        let unit = if self.is_words { BYTES_OF_WORD } else { 1 };
        (i128::from(self.number) << (10 * self.exponent.min(5))) * unit
    }

    /// Both numbers with the smaller suffix, and that suffix.
    fn aligned(self, other: Self) -> (i128, i128, u8, bool) {
        let exponent = self.exponent.min(other.exponent).min(5);
        let is_words = self.is_words && other.is_words;
        let unit = if is_words { BYTES_OF_WORD } else { 1 } << (10 * exponent);
        (self.bytes() / unit, other.bytes() / unit, exponent, is_words)
    }

    /// Applies an operation to the numbers at the smaller suffix. Nothing if the result is out of range.
    pub(crate) fn combined(self, other: Self, operation: impl Fn(i128, i128) -> Option<i128>) -> Option<Self> {
        let (left, right, exponent, is_words) = self.aligned(other);
        Self::new(operation(left, right)?, exponent, is_words)
    }

    /// The amount below zero. The range of the number is symmetric.
    pub(crate) const fn negated(self) -> Self {
        Self { number: -self.number, ..self }
    }

    /// Compares the amounts in bytes.
    pub(crate) fn order(self, other: Self) -> Ordering {
        self.bytes().cmp(&other.bytes())
    }

    pub(crate) const fn is_negative(self) -> bool {
        self.number < 0
    }

    pub(crate) const fn is_zero(self) -> bool {
        self.number == 0
    }
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.number)?;
        if let Some(letter) = usize::from(self.exponent).checked_sub(1).and_then(|place| MULTIPLIERS.chars().nth(place))
        {
            write!(formatter, "{letter}")?;
        }
        formatter.write_str(if self.is_words { "w" } else { "b" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(text: &str) -> Size {
        Size::parse(text).unwrap_or_else(|| panic!("{text} is a size"))
    }

    #[test]
    fn sizes_are_read_packed_and_shown() {
        for text in ["10kb", "2mw", "3gb", "-1b", "0b", "6pb", "4tw", "576460752303423487b", "-576460752303423487pw"] {
            assert_eq!(Size::from_word(size(text).to_word()), size(text));
            assert_eq!(size(text).to_string(), text);
        }
        assert_eq!(size("+3GB").to_string(), "3gb");
        assert_eq!(size("7").to_string(), "7b");
        for text in ["", "b", "1x", "1kk", "1bk", "1kbb", "1.5kb", "576460752303423488b", "- 1b", "1é"] {
            assert_eq!(Size::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_smaller_suffix_is_that_of_the_result() {
        let sum = |a: &str, b: &str| size(a).combined(size(b), i128::checked_add).map(|sum| sum.to_string());
        assert_eq!(sum("10mb", "10gb").as_deref(), Some("10250mb"));
        assert_eq!(sum("1w", "1kb").as_deref(), Some("1028b"));
        assert_eq!(sum("1kw", "1mw").as_deref(), Some("1025kw"));
        assert_eq!(sum("500000000000000000pb", "1b"), None);
        assert_eq!(size("1kw").order(size("4kb")), Ordering::Equal);
        assert_eq!(size("-1b").order(size("0gb")), Ordering::Less);
    }
}
