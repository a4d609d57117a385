//! The stored usage of the presets: once a day a part of it is left (PBS-P-09).

use crate::values::Decimal;
use jiff::{SignedDuration, Timestamp};

const DAY_SECONDS: i64 = 86_400;
const ONE: u128 = 1_000_000;
/// A longer time counts as so many days.
const MOST_DAYS: i64 = 1_000_000;

/// The number of whole days since the last decay, and the time of the new one.
pub fn days_since(last_decay: Timestamp, now: Timestamp) -> (i64, Timestamp) {
    let days = (now.duration_since(last_decay).as_secs() / DAY_SECONDS).max(0);
    let decayed = last_decay.checked_add(SignedDuration::from_secs(days * DAY_SECONDS)).unwrap_or(now);
    (days, decayed)
}

/// The rest of a usage after some days. Fractions are dropped each day.
pub fn decayed(usage: u64, factor: Decimal, days: i64) -> u64 {
    let mut left = usage;
    for _ in 0..days.min(MOST_DAYS) {
        let next = u128::from(left) * u128::from(factor.millionths()) / ONE;
        let next = u64::try_from(next).unwrap_or(u64::MAX);
        if next == left {
            break;
        }
        left = next;
    }
    left
}
