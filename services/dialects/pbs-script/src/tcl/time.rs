//! The commands `datetime` and `strftime` (PBS-X-20).

use jiff::{Timestamp, ToSpan as _, Zoned, civil::DateTime, tz::TimeZone};
use muster_pbs_policy::values;

/// Days of the week from Sunday; both spellings of Thursday.
const DAYS: [(&str, i8); 8] =
    [("Sun", 0), ("Mon", 1), ("Tue", 2), ("Wed", 3), ("Thr", 4), ("Thu", 4), ("Fri", 5), ("Sat", 6)];

/// Seconds: now, of an absolute time, of an interval, or of a time of the next day of that name, today included.
///
/// # Errors
/// What was expected.
pub fn datetime(words: &[String], now: i64, zone: &TimeZone) -> Result<i64, String> {
    match words {
        [] => Ok(now),
        [text] if text.contains(':') => match values::seconds(text).and_then(|seconds| i64::try_from(seconds).ok()) {
            Some(seconds) => Ok(seconds),
            None => Err(format!("expected HH:MM:SS, found `{text}`")),
        },
        [text] => absolute(text, zone).ok_or_else(|| format!("expected YYMMDDhhmmss or HH:MM:SS, found `{text}`")),
        [day, time] => {
            let expected = || format!("expected a day and a time, as Fri 04:30:00, found `{day} {time}`");
            next(day, time, now, zone).ok_or_else(expected)
        }
        _ => Err("wrong # args: should be \"datetime ?day? ?time?\"".into()),
    }
}

/// A text of a time.
///
/// # Errors
/// What was expected.
pub fn strftime(format: &str, seconds: &str, zone: &TimeZone) -> Result<String, String> {
    let time = seconds.trim().parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    let time = time.ok_or_else(|| format!("expected seconds since 1970, found `{seconds}`"))?;
    jiff::fmt::strtime::format(format, &time.to_zoned(zone.clone())).map_err(|error| error.to_string())
}

/// `YYMMDDhhmmss`; the year counts from 1900 and may have three digits.
fn absolute(text: &str, zone: &TimeZone) -> Option<i64> {
    values::decimal(text)?;
    let years = text.len().checked_sub(10).filter(|digits| (2..=3).contains(digits))?;
    let year: i16 = text.get(..years)?.parse().ok()?;
    let part = |number: usize| text.get(years + 2 * number..years + 2 * number + 2)?.parse::<i8>().ok();
    let [month, day, hour, minute, second] = [part(0)?, part(1)?, part(2)?, part(3)?, part(4)?];
    let local = DateTime::new(1900 + year, month, day, hour, minute, second, 0).ok()?;
    zone.to_ambiguous_timestamp(local).compatible().ok().map(Timestamp::as_second)
}

fn next(day: &str, time: &str, now: i64, zone: &TimeZone) -> Option<i64> {
    let wanted = DAYS.iter().find(|(name, _)| name.eq_ignore_ascii_case(day)).map(|(_, number)| *number)?;
    let seconds = values::seconds(time).filter(|seconds| *seconds < 86_400 && time.contains(':'))?;
    let today: Zoned = Timestamp::from_second(now).ok()?.to_zoned(zone.clone());
    let ahead = (wanted - today.weekday().to_sunday_zero_offset()).rem_euclid(7);
    let date = today.date().checked_add(i32::from(ahead).days()).ok()?;
    let part = |value: u64| i8::try_from(value).ok();
    let local = date.at(part(seconds / 3600)?, part(seconds / 60 % 60)?, part(seconds % 60)?, 0);
    zone.to_ambiguous_timestamp(local).compatible().ok().map(Timestamp::as_second)
}
