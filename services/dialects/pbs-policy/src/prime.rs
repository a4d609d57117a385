//! Prime time of the presets: Monday to Friday but for holidays, between two times of the day (PBS-P-03).

use crate::{
    holidays::Holidays,
    local_time,
    preset::{Enforced, PresetConfig},
    sched_config::HolidaysStale,
};
use jiff::{
    Timestamp, ToSpan,
    civil::{Date, Time, Weekday},
    tz::TimeZone,
};

/// The last second of a day, and one more.
const DAY: u64 = 86_400;
/// The number of days that are looked at, at most.
const MOST_DAYS: i32 = 1_000;

/// The times within a range that are not prime, in their order. Where prime time is not enforced none is.
pub fn non_prime_periods(
    config: &PresetConfig,
    holidays: &Holidays,
    stale: HolidaysStale,
    (from, until): (Timestamp, Timestamp),
    zone: &TimeZone,
) -> Vec<(Timestamp, Timestamp)> {
    let first = zone.to_datetime(from).date().checked_sub(1.day()).unwrap_or(Date::MIN);
    let days = (0..MOST_DAYS).filter_map(|ahead| first.checked_add(ahead.days()).ok());
    let mut periods = Vec::new();
    let mut at = from;
    for date in days {
        if !is_working_day(date, holidays, stale) {
            continue;
        }
        for (begin, end) in hours_of(config, date, zone) {
            let begin = enforced_from(config, zone).map_or(until, |start| begin.max(start));
            if begin >= until {
                break;
            }
            if begin < end && end > at {
                if begin > at {
                    periods.push((at, begin));
                }
                at = end;
            }
        }
        if zone.to_datetime(until).date() < date {
            break;
        }
    }
    if at < until {
        periods.push((at, until));
    }
    periods
}

fn is_working_day(date: Date, holidays: &Holidays, stale: HolidaysStale) -> bool {
    !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday) && !holidays.is_holiday(date, stale)
}

/// From when on prime time is enforced; `None` if it never is.
fn enforced_from(config: &PresetConfig, zone: &TimeZone) -> Option<Timestamp> {
    match config.enforce_prime_time {
        Enforced::Never => None,
        Enforced::Always => Some(Timestamp::MIN),
        Enforced::From(start) => local_time::instant(start, zone),
    }
}

/// Prime time of a day: between begin and end, or before the end and from the begin on if that is later.
fn hours_of(config: &PresetConfig, date: Date, zone: &TimeZone) -> Vec<(Timestamp, Timestamp)> {
    let (start, end) = (config.prime_time_start, config.prime_time_end);
    let spans = match start.cmp(&end) {
        std::cmp::Ordering::Less => vec![(start, end)],
        std::cmp::Ordering::Equal => Vec::new(),
        std::cmp::Ordering::Greater => vec![(0, end), (start, DAY)],
    };
    let instants =
        spans.into_iter().filter_map(|(from, until)| Some((instant(date, from, zone)?, instant(date, until, zone)?)));
    instants.filter(|(from, until)| from < until).collect()
}

fn instant(date: Date, seconds: u64, zone: &TimeZone) -> Option<Timestamp> {
    if seconds >= DAY {
        return local_time::instant(date.tomorrow().ok()?.to_datetime(Time::midnight()), zone);
    }
    let part = |number: u64| i8::try_from(number).ok();
    let time = Time::new(part(seconds / 3600)?, part(seconds / 60 % 60)?, part(seconds % 60)?, 0).ok()?;
    local_time::instant(date.to_datetime(time), zone)
}
