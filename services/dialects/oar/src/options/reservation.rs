//! Jobs with a fixed start: `-r`.

use super::date;
use crate::refusal::{Code, Refusal};
use jiff::tz::TimeZone;

/// The value of `-r`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The start, in seconds since the epoch.
    pub start: i64,
    /// The end, if it is given.
    pub end: Option<i64>,
}

/// Reads `-r START[,END]` (OAR-G-12).
///
/// # Errors
/// The first mistake (exit 7).
pub fn read(text: &str, now: i64, zone: &TimeZone) -> Result<Window, Refusal> {
    let refused = |why: String| Refusal::option(Code::Reservation, "-r", why);
    let (start, end) = text.split_once(',').map_or((text, None), |(start, end)| (start, Some(end)));
    let start = date::seconds(start, now, zone).map_err(refused)?;
    let end = end.map(|end| date::seconds(end, now, zone)).transpose().map_err(refused)?;
    if end.is_some_and(|end| end <= start) {
        return Err(refused("the end of a reservation is after its start".to_owned()));
    }
    Ok(Window { start, end })
}

/// The times of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When it was to start.
    pub asked: i64,
    /// When it starts: not in the past.
    pub start: i64,
    /// How long from then on. A late start keeps the end (OAR-G-14).
    pub walltime: i64,
}

impl Window {
    /// The walltime: the one of `-l`, else up to the end, else the default.
    pub fn walltime(self, own: Option<i64>, default: i64) -> i64 {
        own.or_else(|| self.end.map(|end| end - self.start)).unwrap_or(default)
    }

    /// The times of a reservation that is asked for now.
    ///
    /// # Errors
    /// A window that has passed (exit 7).
    pub fn times(self, walltime: i64, now: i64) -> Result<Times, Refusal> {
        let end = self.start.saturating_add(walltime);
        if now >= end {
            return Err(Refusal::option(Code::Reservation, "-r", "the reservation is too old: its end has passed"));
        }
        let start = self.start.max(now);
        Ok(Times { asked: self.start, start, walltime: end - start })
    }
}
