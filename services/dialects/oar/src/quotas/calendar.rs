//! Rules that change with the time of the week, and for single spans (OAR-Q-10).

/// The seconds of a week.
pub const WEEK: i64 = 7 * 86_400;

/// A part of every week, in seconds since Monday 00:00 of the clocks there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its begin.
    pub begin: i64,
    /// Its end, up to [`WEEK`].
    pub end: i64,
    /// The number of its rules.
    pub rules: usize,
}

/// A span that goes before all periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its begin, in seconds since the epoch.
    pub begin: i64,
    /// Its end.
    pub end: i64,
    /// The number of its rules.
    pub rules: usize,
}
