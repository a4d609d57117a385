//! Dates, as people write them.

use crate::text::{decimal, shown};
use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time},
    tz::TimeZone,
};

/// The seconds since the epoch of `YYYY-MM-DD hh:mm:ss` or `now`. Without a date it is today; seconds and minutes may be
/// missing. A time that a change of clocks skips is the next one that exists, a doubled one is the first.
///
/// # Errors
/// The first mistake, as a sentence.
pub fn seconds(text: &str, now: i64, zone: &TimeZone) -> Result<i64, String> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("now") {
        return Ok(now);
    }
    let wrong = || format!("expected YYYY-MM-DD hh:mm:ss or now, found '{}'", shown(text));
    let (date, time) = match text.split_once([' ', 'T']) {
        Some((date, time)) => (date_of(date).ok_or_else(wrong)?, time.trim()),
        None => (today(now, zone).ok_or_else(wrong)?, text),
    };
    let local = DateTime::from_parts(date, time_of(time).ok_or_else(wrong)?);
    let instant = zone.to_ambiguous_timestamp(local).compatible().map_err(|_| wrong())?;
    Ok(instant.as_second())
}

/// A date in the form of OAR's tables: `YYYY-MM-DD hh:mm:ss`.
pub fn written(seconds: i64, zone: &TimeZone) -> String {
    let instant = Timestamp::from_second(seconds).unwrap_or(if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX });
    zone.to_datetime(instant).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn today(now: i64, zone: &TimeZone) -> Option<Date> {
    Some(zone.to_datetime(Timestamp::from_second(now).ok()?).date())
}

fn date_of(text: &str) -> Option<Date> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let is_year = year.len() == 4 && parts.next().is_none();
    is_year.then(|| Date::new(decimal(year)?, decimal(month)?, decimal(day)?).ok()).flatten()
}

fn time_of(text: &str) -> Option<Time> {
    let parts: Vec<i8> = text.split(':').map(decimal).collect::<Option<_>>()?;
    match parts[..] {
        [hour] => Time::new(hour, 0, 0, 0).ok(),
        [hour, minute] => Time::new(hour, minute, 0, 0).ok(),
        [hour, minute, second] => Time::new(hour, minute, second, 0).ok(),
        _ => None,
    }
}
