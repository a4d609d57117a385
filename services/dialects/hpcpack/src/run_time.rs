//! Run times (HPC-J-10).

use crate::codes::{Code, Refusal};
use std::fmt;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A specified run time. A job without one has no limit either, unless its template has a default (HPC-T-03).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunTime {
    /// 1 to [`RunTime::MOST_SECONDS`].
    Seconds(u32),
    /// No limit, at the user's request.
    Infinite,
}

impl RunTime {
    /// The longest run time, in seconds: the whole minutes in a 31-bit number, the range of `RuntimeSeconds`.
    pub const MOST_SECONDS: u32 = i32::MAX as u32 / 60 * 60;

    /// A run time in seconds; `None` for zero and for more than [`RunTime::MOST_SECONDS`].
    pub fn from_seconds(seconds: u64) -> Option<Self> {
        u32::try_from(seconds).ok().filter(|seconds| (1..=Self::MOST_SECONDS).contains(seconds)).map(Self::Seconds)
    }

    /// Reads `[[days:]hours:]minutes` or `Infinite` in any case (HPC-J-10).
    ///
    /// # Errors
    /// `RunTimeNotValid`: zero, negative, four parts, anything but digits, or more than [`RunTime::MOST_SECONDS`].
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        if text.eq_ignore_ascii_case("infinite") {
            return Ok(Self::Infinite);
        }
        let expected = "expected [[days:]hours:]minutes, more than zero, or Infinite";
        parts(text).and_then(Self::from_seconds).ok_or_else(|| not_valid(text, expected))
    }

    /// Reads whole seconds, as `RuntimeSeconds` gives them, or `Infinite` (HPC-J-10).
    ///
    /// # Errors
    /// `RunTimeNotValid`: zero, negative, or anything but digits.
    pub fn parse_seconds(text: &str) -> Result<Self, Refusal> {
        if text.eq_ignore_ascii_case("infinite") {
            return Ok(Self::Infinite);
        }
        let expected = "expected whole seconds, more than zero, or Infinite";
        digits(text).and_then(Self::from_seconds).ok_or_else(|| not_valid(text, expected))
    }

    /// Its seconds; `None` if there is no limit.
    pub const fn seconds(self) -> Option<u32> {
        match self {
            Self::Seconds(seconds) => Some(seconds),
            Self::Infinite => None,
        }
    }

    /// Why a job ends that reached its run time (HPC-J-11, HPC-E-10).
    pub fn expired(seconds: u32) -> Refusal {
        Refusal::new(Code::RunTimeExpired, format!("the run time of {seconds} s is over"))
    }

    /// This run time in whole minutes, rounded up, as `RunTime` can write it.
    pub fn in_minutes(self) -> Self {
        match self {
            Self::Seconds(seconds) => Self::Seconds(seconds.div_ceil(60) * 60),
            Self::Infinite => self,
        }
    }

    /// The run time in force if both `RunTime` and `RuntimeSeconds` are given: the seconds, if `RunTime` is what would
    /// be written for them.
    ///
    /// # Errors
    /// `RunTimeNotValid` if it is not.
    pub fn agree(run_time: Self, seconds: Self) -> Result<Self, Refusal> {
        if run_time == seconds.in_minutes() || run_time == seconds {
            return Ok(seconds);
        }
        let shown = seconds.seconds().map_or_else(|| "Infinite".to_owned(), |seconds| seconds.to_string());
        let text = format!("RunTime `{run_time}` and RuntimeSeconds `{shown}` are different run times");
        Err(Refusal::new(Code::RunTimeNotValid, text))
    }
}

fn not_valid(text: &str, expected: &str) -> Refusal {
    Refusal::new(Code::RunTimeNotValid, format!("run time `{text}`: {expected}"))
}

fn parts(text: &str) -> Option<u64> {
    let parts: Vec<u64> = text.split(':').map(digits).collect::<Option<_>>()?;
    let units = match parts.len() {
        1 => &[MINUTE][..],
        2 => &[HOUR, MINUTE],
        3 => &[DAY, HOUR, MINUTE],
        _ => return None,
    };
    parts.iter().zip(units).try_fold(0u64, |sum, (part, unit)| sum.checked_add(part.checked_mul(*unit)?))
}

fn digits(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

impl fmt::Display for RunTime {
    /// In the form that [`RunTime::parse`] reads; seconds are rounded up to whole minutes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Seconds(seconds) = self.in_minutes() else { return f.write_str("Infinite") };
        let seconds = u64::from(seconds);
        let (days, hours, minutes) = (seconds / DAY, seconds % DAY / HOUR, seconds % HOUR / MINUTE);
        match (days, hours) {
            (0, 0) => write!(f, "{minutes}"),
            (0, _) => write!(f, "{hours}:{minutes}"),
            _ => write!(f, "{days}:{hours}:{minutes}"),
        }
    }
}
