//! Writes single values into a cell.

use super::Clock;
use crate::{duration, moment::TimeFormat};
use muster_schemas::time::Timestamp;
use std::fmt::{Display, Write};

/// The text for a missing value.
pub const NULL: &str = "(null)";

/// Writes a value.
pub fn put(value: impl Display, out: &mut String) {
    // Writing to a string never fails.
    let _ = write!(out, "{value}");
}

/// Writes a number. A long list consists mostly of numbers, and this is several times faster than [`put`].
pub fn number(value: impl Into<u64>, out: &mut String) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut rest = value.into();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend(digits[start..].iter().map(|digit| char::from(*digit)));
}

/// Writes a text, or `(null)`.
pub fn or_null(text: Option<&str>, out: &mut String) {
    out.push_str(text.filter(|text| !text.is_empty()).unwrap_or(NULL));
}

/// Writes a point in time as `2026-11-20T08:30:00` in the reader's zone, or in the reader's format, or `none` without
/// one (SL-C-04, SL-E-11).
pub fn moment(time: Option<Timestamp>, none: &str, clock: &Clock, out: &mut String) {
    let Some(time) = time else { return out.push_str(none) };
    if clock.format != TimeFormat::Standard {
        let now = clock.now.to_jiff().to_zoned(clock.zone.clone());
        return out.push_str(&clock.format.show(time, &now));
    }
    // Far quicker than a pattern, which matters for long lists.
    let civil = clock.zone.to_datetime(Timestamp::from_unix_seconds(time.unix_seconds()).to_jiff());
    let (date, time) = (civil.date(), civil.time());
    let (year, month, day) = (date.year(), date.month(), date.day());
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    let _ = write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
}

/// Writes a point in time as in the line above long lists: `Fri Nov 20 08:30:00 2026`.
pub fn date_line(time: Timestamp, clock: &Clock, out: &mut String) {
    let zoned = Timestamp::from_unix_seconds(time.unix_seconds()).to_jiff().to_zoned(clock.zone.clone());
    let _ = write!(out, "{}", zoned.strftime("%a %b %d %H:%M:%S %Y"));
    out.push('\n');
}

/// Writes a length of time like `squeue` does; `UNLIMITED` for none.
pub fn short_limit(seconds: Option<u64>, out: &mut String) {
    match seconds {
        Some(seconds) => out.push_str(&duration::short(seconds)),
        None => out.push_str("UNLIMITED"),
    }
}

/// Writes a length of time like `scontrol` and `sacct` do; `UNLIMITED` for none.
pub fn long_limit(seconds: Option<u64>, out: &mut String) {
    match seconds {
        Some(seconds) => out.push_str(&duration::long(seconds)),
        None => out.push_str("UNLIMITED"),
    }
}
