//! Durations and points in time as people write them.

use super::shorten;
use jiff::{Span, Zoned, civil};
use muster_schemas::Timestamp;

/// A length of time in whole seconds.
///
/// With units: `90s`, `30m`, `2h`, `1d12h`. With colons, as HPC schedulers write it: `MINUTES:SECONDS`,
/// `HOURS:MINUTES:SECONDS`, `DAYS-HOURS[:MINUTES[:SECONDS]]`. A number alone is minutes.
pub fn parse_walltime(text: &str) -> Result<u64, String> {
    let error =
        || format!("`{}` is not a time such as 30m, 1:30:00 or 2-12:00:00 (a number alone is minutes)", shorten(text));
    let seconds =
        if text.bytes().any(|byte| byte.is_ascii_alphabetic()) { with_units(text) } else { with_colons(text) };
    seconds.ok_or_else(error)
}

fn with_units(text: &str) -> Option<u64> {
    let mut seconds: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = decimal(&rest[..digits])?;
        let unit = rest.as_bytes().get(digits)?;
        let unit_seconds = match unit {
            b's' => 1,
            b'm' => 60,
            b'h' => 3600,
            b'd' => 86_400,
            _ => return None,
        };
        seconds = seconds.checked_add(number.checked_mul(unit_seconds)?)?;
        rest = &rest[digits + 1..];
    }
    Some(seconds)
}

fn with_colons(text: &str) -> Option<u64> {
    let (days, clock) = match text.split_once('-') {
        None => (None, text),
        Some((days, clock)) => (Some(decimal(days)?), clock),
    };
    let parts = clock.split(':').map(decimal).collect::<Option<Vec<u64>>>()?;
    let (hours, minutes, seconds) = match (days, parts[..].len()) {
        (None, 1) => (0, parts[0], 0),
        (None, 2) => (0, parts[0], parts[1]),
        (Some(_), 1) => (parts[0], 0, 0),
        (Some(_), 2) => (parts[0], parts[1], 0),
        (_, 3) => (parts[0], parts[1], parts[2]),
        _ => return None,
    };
    let hours = days.unwrap_or(0).checked_mul(24)?.checked_add(hours)?;
    hours.checked_mul(60)?.checked_add(minutes)?.checked_mul(60)?.checked_add(seconds)
}

fn decimal(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// A point in the past, for `--at`: what `parse_when` takes, where a clock time is the last such moment.
pub fn parse_past(text: &str) -> Result<Timestamp, String> {
    parse_when(text, &Zoned::now(), Lean::Past)
}

/// The moment to look at, for `--at`: as [`parse_past`], but the future is refused.
pub fn parse_at(text: &str) -> Result<Timestamp, String> {
    let time = parse_past(text)?;
    if time > Timestamp::now() { Err(format!("`{}` has not been yet", shorten(text))) } else { Ok(time) }
}

/// A point in time by which something must be over, for `--deadline`: as [`parse_future`].
pub fn parse_deadline(text: &str) -> Result<Timestamp, String> {
    let time = parse_future(text)?;
    if time < Timestamp::now() { Err(format!("`{}` has passed already", shorten(text))) } else { Ok(time) }
}

/// A point in the future, for `--begin`: what `parse_when` takes, where a clock time is the next such moment.
pub fn parse_future(text: &str) -> Result<Timestamp, String> {
    parse_when(text, &Zoned::now(), Lean::Future)
}

/// Which moment with a clock time is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lean {
    /// The last one.
    Past,
    /// The next one.
    Future,
}

/// A point in time: RFC 3339, `2026-11-20[ T]08:30[:00]` and `2026-11-20` in the local zone, `08:30[:15]`, `now`,
/// `-10s`, `10 minutes ago`, `+2h`, `now+30m`.
pub fn parse_when(text: &str, now: &Zoned, lean: Lean) -> Result<Timestamp, String> {
    let text = text.trim();
    let parsed = absolute(text, now).or_else(|| clock_time(text, now, lean)).or_else(|| relative(text, now));
    parsed.ok_or_else(|| {
        format!(
            "`{}` is not a time such as 2026-11-20T08:30:00Z, 2026-11-20 08:30, 08:30, -10m or \"2 hours ago\"",
            shorten(text)
        )
    })
}

fn absolute(text: &str, now: &Zoned) -> Option<Timestamp> {
    if text.len() < "2026-11-20".len() || !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Ok(point) = text.parse::<jiff::Timestamp>() {
        return Some(Timestamp(point.as_microsecond()));
    }
    let local: civil::DateTime = text.parse().ok()?;
    stamp(&local.to_zoned(now.time_zone().clone()).ok()?)
}

fn clock_time(text: &str, now: &Zoned, lean: Lean) -> Option<Timestamp> {
    let (hours, rest) = text.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "0"));
    let part = |text: &str| decimal(text).and_then(|number| i8::try_from(number).ok());
    let clock = civil::Time::new(part(hours)?, part(minutes)?, part(seconds)?, 0).ok()?;
    let today = now.date().to_datetime(clock).to_zoned(now.time_zone().clone()).ok()?;
    let date = match lean {
        Lean::Past if today > *now => now.date().yesterday().ok()?,
        Lean::Future if today <= *now => now.date().tomorrow().ok()?,
        _ => now.date(),
    };
    stamp(&date.to_datetime(clock).to_zoned(now.time_zone().clone()).ok()?)
}

fn relative(text: &str, now: &Zoned) -> Option<Timestamp> {
    if text == "now" {
        return stamp(now);
    }
    let offset = text.strip_prefix("now").map_or(text, str::trim_start);
    let (sign, length) = match offset.as_bytes().first()? {
        b'-' => (-1, &offset[1..]),
        b'+' => (1, &offset[1..]),
        _ => (1, offset),
    };
    // A calendar span, so that "1 month ago" is the same day of the month.
    let span: Span = length.trim().parse().ok()?;
    let signed = span.checked_mul(sign).ok()?;
    let moved = now.checked_add(signed).ok()?;
    // A length without a sign and without "ago" says neither before nor after.
    (offset.starts_with(['-', '+']) || moved < *now).then(|| stamp(&moved)).flatten()
}

fn stamp(point: &Zoned) -> Option<Timestamp> {
    Some(Timestamp(point.timestamp().as_microsecond()))
}

/// A length of time for tables: `0:07`, `12:30`, `3:00:00`, `2-12:00:00`.
pub fn format_duration(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (days, hours, minutes, rest) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{rest:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{rest:02}"),
        _ => format!("{days}-{hours:02}:{minutes:02}:{rest:02}"),
    }
}
