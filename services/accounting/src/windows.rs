//! Windows of equal length, counted from 1970-01-01 00:00 UTC.

use muster_schemas::Timestamp;
use serde::{Deserialize, Serialize};

/// The length of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Windows {
    micros: i64,
}

/// The most windows that a time span is divided among; the last one gets the rest. Only a walltime of years in windows
/// of minutes reaches this.
const MOST_WINDOWS_OF_A_SPAN: usize = 10_000;

impl Windows {
    /// Windows of this many seconds, limited to between 1 second and 100 years.
    pub(crate) fn of_seconds(seconds: u64) -> Self {
        let bounded = seconds.clamp(1, 100 * 366 * 86_400);
        Self { micros: bounded as i64 * 1_000_000 }
    }

    pub(crate) fn seconds(self) -> u64 {
        self.micros.unsigned_abs() / 1_000_000
    }

    /// The start of the window that a time is in.
    pub(crate) fn start_of(self, time: Timestamp) -> Timestamp {
        Timestamp(time.0.div_euclid(self.micros).saturating_mul(self.micros))
    }

    /// The end of the window with this start.
    pub(crate) fn end_of(self, start: Timestamp) -> Timestamp {
        Timestamp(start.0.saturating_add(self.micros))
    }

    /// Divides the time from `from` to `to` among the windows that it touches: the start of each with the microseconds
    /// that fall in it. Nothing if `to` is not later. The parts add up to the whole.
    pub(crate) fn divide(self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = (Timestamp, u64)> {
        let mut at = from;
        let mut count = 0;
        std::iter::from_fn(move || {
            if at >= to {
                return None;
            }
            count += 1;
            let start = self.start_of(at);
            let is_last = count == MOST_WINDOWS_OF_A_SPAN;
            let end = if is_last { to } else { self.end_of(start).min(to) };
            let micros = end.micros_since(at).unsigned_abs();
            at = end;
            Some((start, micros))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: i64) -> Timestamp {
        Timestamp::from_unix_seconds(seconds)
    }

    #[test]
    fn a_span_is_cut_where_windows_meet() {
        let parts: Vec<_> = Windows::of_seconds(100).divide(seconds(150), seconds(301)).collect();
        let micros = 1_000_000;
        assert_eq!(parts, [(seconds(100), 50 * micros), (seconds(200), 100 * micros), (seconds(300), micros)]);
    }

    #[test]
    fn times_before_1970_have_windows_too() {
        assert_eq!(Windows::of_seconds(100).start_of(seconds(-1)), seconds(-100));
    }

    #[test]
    fn an_empty_or_turned_span_has_no_parts() {
        let windows = Windows::of_seconds(100);
        assert_eq!(windows.divide(seconds(5), seconds(5)).count(), 0);
        assert_eq!(windows.divide(seconds(6), seconds(5)).count(), 0);
    }

    #[test]
    fn a_span_of_ages_is_bounded_and_nothing_of_it_is_lost() {
        let (from, to) = (seconds(0), Timestamp(i64::MAX));
        let parts: Vec<_> = Windows::of_seconds(1).divide(from, to).collect();
        assert_eq!(parts.len(), MOST_WINDOWS_OF_A_SPAN);
        assert_eq!(parts.iter().map(|(_, micros)| u128::from(*micros)).sum::<u128>(), i64::MAX as u128);
    }

    #[test]
    fn absurd_lengths_are_bounded() {
        assert_eq!(Windows::of_seconds(0).seconds(), 1);
        assert_eq!(Windows::of_seconds(u64::MAX).seconds(), 100 * 366 * 86_400);
    }
}
