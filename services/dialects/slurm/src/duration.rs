//! Lengths of time: how they are written, and how each command prints them (SL-C-03).

use std::fmt;

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;
const DAY: u64 = 86_400;

/// The walltime of a job without a limit: the longest there is, because the job model uses the queue's default if none
/// is given.
const NO_LIMIT_SECONDS: u64 = 100 * 366 * DAY;

/// The limit of a job with this walltime; `None` if there is no limit.
pub fn limit_seconds(walltime_seconds: Option<u64>) -> Option<u64> {
    walltime_seconds.filter(|seconds| *seconds < NO_LIMIT_SECONDS)
}

/// How long a job may run, in whole minutes (SL-C-03).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeLimit {
    /// This many minutes, at least 1.
    Minutes(u32),
    /// No limit.
    Unlimited,
}

impl TimeLimit {
    /// Reads `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M`, `D-H:M:S`; `0`, `UNLIMITED`, `INFINITE` and `-1` mean no limit.
    /// Seconds are rounded up to the minute. `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case("unlimited") || text.eq_ignore_ascii_case("infinite") || text == "-1" {
            return Some(Self::Unlimited);
        }
        Self::from_seconds(parse_seconds(text)?)
    }

    /// The limit for a number of seconds, rounded up to the minute; 0 is no limit. `None` if it is too large.
    pub fn from_seconds(seconds: u64) -> Option<Self> {
        match u32::try_from(seconds.div_ceil(MINUTE)) {
            Ok(0) => Some(Self::Unlimited),
            Ok(minutes) => Some(Self::Minutes(minutes)),
            Err(_) => None,
        }
    }

    /// Its seconds; `None` if there is no limit.
    pub fn seconds(self) -> Option<u64> {
        match self {
            Self::Minutes(minutes) => Some(u64::from(minutes) * MINUTE),
            Self::Unlimited => None,
        }
    }

    /// The walltime to request for this limit.
    pub fn walltime_seconds(self) -> u64 {
        self.seconds().unwrap_or(NO_LIMIT_SECONDS)
    }

    /// As `squeue` prints it: `30:00`, `1:00:00`, `2-00:00:00`, `UNLIMITED`.
    pub fn short(self) -> String {
        self.seconds().map_or_else(|| "UNLIMITED".to_owned(), short)
    }

    /// As `sinfo` prints it: like `squeue`, but `infinite` for no limit.
    pub fn sinfo(self) -> String {
        self.seconds().map_or_else(|| "infinite".to_owned(), short)
    }
}

impl fmt::Display for TimeLimit {
    /// As `scontrol` and `sacct` print it: `00:30:00`, `2-00:00:00`, `UNLIMITED`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seconds() {
            Some(seconds) => f.write_str(&long(seconds)),
            None => f.write_str("UNLIMITED"),
        }
    }
}

/// The number of seconds in `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M` or `D-H:M:S`; `None` for anything else.
pub fn parse_seconds(text: &str) -> Option<u64> {
    let (days, clock) = match text.split_once('-') {
        None => (None, text),
        Some((days, clock)) => (Some(decimal(days)?), clock),
    };
    let parts: Vec<u64> = clock.split(':').map(decimal).collect::<Option<_>>()?;
    let units: &[u64] = match (days, parts.len()) {
        (None, 1) => &[MINUTE],
        (None, 2) => &[MINUTE, 1],
        (Some(_), 1) => &[HOUR],
        (Some(_), 2) => &[HOUR, MINUTE],
        (_, 3) => &[HOUR, MINUTE, 1],
        _ => return None,
    };
    let clock =
        parts.iter().zip(units).try_fold(0u64, |sum, (part, unit)| sum.checked_add(part.checked_mul(*unit)?))?;
    days.unwrap_or(0).checked_mul(DAY)?.checked_add(clock)
}

fn decimal(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Seconds as `scontrol` and `sacct` print them: `[D-]HH:MM:SS`.
pub fn long(seconds: u64) -> String {
    let (days, hours, minutes, seconds) = split(seconds);
    match days {
        0 => format!("{hours:02}:{minutes:02}:{seconds:02}"),
        days => format!("{days}-{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// Seconds as `squeue` prints them: `[D-][H:]M:SS`, such as `0:06`, `18:18`, `1:00:00`, `2-00:00:00`.
pub fn short(seconds: u64) -> String {
    let (days, hours, minutes, seconds) = split(seconds);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{seconds:02}"),
        (0, hours) => format!("{hours}:{minutes:02}:{seconds:02}"),
        (days, hours) => format!("{days}-{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

fn split(seconds: u64) -> (u64, u64, u64, u64) {
    (seconds / DAY, seconds % DAY / HOUR, seconds % HOUR / MINUTE, seconds % MINUTE)
}
