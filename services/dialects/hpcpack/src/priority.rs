//! Priorities: values 0..4000 in five bands (HPC-J-06..09).

use crate::codes::{Code, Refusal};
use std::fmt;

/// The names of the bands; the band of the name at index `n` begins at `n * BAND`.
const NAMES: [&str; 5] = ["Lowest", "BelowNormal", "Normal", "AboveNormal", "Highest"];
/// Values in a band.
const BAND: u16 = 1000;
/// Above this offset a value is shown relative to the next band.
const MOST_SHOWN_ABOVE: u16 = 500;

/// A priority value, 0..4000 (HPC-J-06). The default is Normal, 2000 (HPC-J-08).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u16);

impl Priority {
    /// 0.
    pub const LOWEST: Self = Self(0);
    /// 2000.
    pub const NORMAL: Self = Self(2 * BAND);
    /// 4000.
    pub const HIGHEST: Self = Self(4 * BAND);

    /// The priority of a value in 0..4000.
    pub fn new(value: i64) -> Option<Self> {
        u16::try_from(value).ok().map(Self).filter(|priority| *priority <= Self::HIGHEST)
    }

    /// The value, 0..4000.
    pub const fn value(self) -> u16 {
        self.0
    }

    /// Reads a name, a name with `+N` or `-N`, or an integer, without blanks; names ignore case (HPC-J-06).
    ///
    /// # Errors
    /// `PriorityNotValid` if it is none of these or lies outside 0..4000.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        read(text).and_then(Self::new).ok_or_else(|| {
            let expected = "expected Lowest, BelowNormal, Normal, AboveNormal or Highest, also with +N or -N, or an \
                            integer, from 0 to 4000 and without blanks";
            Refusal::new(Code::PriorityNotValid, format!("priority `{text}`: {expected}"))
        })
    }

    /// The name of the value's band (HPC-J-07). Highest is 4000 alone.
    pub const fn band(self) -> &'static str {
        NAMES[(self.0 / BAND) as usize]
    }

    /// The priority in force if both `Priority` and `ExpandedPriority` are given (HPC-J-09).
    ///
    /// # Errors
    /// `PriorityConflict` if they denote different bands.
    pub fn agree(priority: Self, expanded: Self) -> Result<Self, Refusal> {
        if priority.band() == expanded.band() {
            return Ok(expanded);
        }
        let text = format!("Priority `{priority}` and ExpandedPriority `{expanded}` denote different bands");
        Err(Refusal::new(Code::PriorityConflict, text))
    }
}

fn read(text: &str) -> Option<i64> {
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return number(text);
    }
    let end = text.find(['+', '-']).unwrap_or(text.len());
    let (name, offset) = text.split_at(end);
    let band = NAMES.iter().position(|known| known.eq_ignore_ascii_case(name))?;
    let base = i64::try_from(band).ok()? * i64::from(BAND);
    match offset.split_at_checked(1) {
        None => Some(base),
        Some(("+", digits)) => Some(base + number(digits)?),
        Some((_, digits)) => Some(base - number(digits)?),
    }
}

/// A number of plain digits, small enough that sums cannot overflow.
fn number(digits: &str) -> Option<i64> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse::<u32>().ok().filter(|_| plain).map(i64::from)
}

impl Default for Priority {
    fn default() -> Self {
        Self::NORMAL
    }
}

impl fmt::Display for Priority {
    /// The band's name, with `+N` for offsets 1..500; above that the next band with `-N` (HPC-J-07).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = self.0 % BAND;
        match offset {
            0 => f.write_str(self.band()),
            1..=MOST_SHOWN_ABOVE => write!(f, "{}+{offset}", self.band()),
            _ => write!(f, "{}-{}", NAMES[(self.0 / BAND + 1) as usize], BAND - offset),
        }
    }
}
