//! Points in time: how they are written and printed (SL-C-04).

use jiff::{Span, ToSpan, Zoned, civil, tz::TimeZone};
use muster_schemas::time::Timestamp;
use std::cell::LazyCell;

/// The current time of a command, in the time zone of its process. Finding the zone reads a file, and few command lines
/// mention times.
pub type Now = LazyCell<Zoned>;

/// Reads a point in time: `HH:MM[:SS] [AM|PM]`, `MMDD[YY]`, `MM/DD[/YY]`, `MM.DD[.YY]`, `YYYY-MM-DD[THH:MM[:SS]]`,
/// `today`, `tomorrow`, `midnight`, `noon`, `elevenses`, `fika`, `teatime`,
/// `now[{+|-}N[seconds|minutes|hours|days|weeks]]`, a date and a time in either order. A past time of day means
/// tomorrow, a past date without a year means next year. The time zone is that of `now`. `None` for anything else.
pub fn parse(text: &str, now: &Zoned) -> Option<Timestamp> {
    read(text, now, Looks::Ahead)
}

/// Like [`parse`], for queries: a time of day is today's; a date without a year is this year's, or last year's if its
/// month is after the current one. `uts` and a number is Unix time.
pub fn parse_past(text: &str, now: &Zoned) -> Option<Timestamp> {
    match text.trim().strip_prefix("uts").and_then(decimal) {
        Some(seconds) => seconds.checked_mul(1_000_000).map(Timestamp),
        None => read(text, now, Looks::Back),
    }
}

/// The direction in which to complete a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looks {
    Ahead,
    Back,
}

fn read(text: &str, now: &Zoned, looks: Looks) -> Option<Timestamp> {
    let lower = text.trim().to_ascii_lowercase();
    let zoned = match lower.strip_prefix("now") {
        Some(offset) => relative(offset, now)?,
        None => calendar(&lower, now, looks)?,
    };
    Some(Timestamp(zoned.timestamp().as_microsecond()))
}

/// `now` plus or minus `N[unit]`. A count without a unit is seconds.
fn relative(text: &str, now: &Zoned) -> Option<Zoned> {
    let text: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    if text.is_empty() {
        return Some(now.clone());
    }
    let magnitude = text.strip_prefix(['+', '-'])?;
    let digits = magnitude.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let count: i64 = decimal(digits)?;
    let span = span(count, &magnitude[digits.len()..])?;
    if text.starts_with('-') { now.checked_sub(span).ok() } else { now.checked_add(span).ok() }
}

fn span(count: i64, unit: &str) -> Option<Span> {
    // Hours and days are counted as seconds: an hour later is an hour later, even when the clock changes.
    let seconds = match unit {
        "" | "second" | "seconds" => 1,
        "minute" | "minutes" => 60,
        "hour" | "hours" => 3600,
        "day" | "days" => 86_400,
        "week" | "weeks" => 604_800,
        _ => return None,
    };
    Span::new().try_seconds(count.checked_mul(seconds)?).ok()
}

/// The calendar parts of a text.
#[derive(Default)]
struct Parts {
    date: Option<Date>,
    time: Option<civil::Time>,
}

/// A date, and whether its year was left out.
struct Date {
    day: civil::Date,
    without_year: bool,
}

fn calendar(text: &str, now: &Zoned, looks: Looks) -> Option<Zoned> {
    let mut parts = Parts::default();
    let text = without_hyphens(text);
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if words.is_empty() {
        return None;
    }
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let half = words.get(at + 1).copied().filter(|half| matches!(*half, "am" | "pm"));
        at += 1 + usize::from(take(&mut parts, word, half, now)?);
    }
    let civil = match (parts.date, parts.time) {
        (Some(date), time) => on_date(date, time.unwrap_or(civil::Time::midnight()), now, looks)?,
        (None, Some(time)) => {
            let today = now.date().to_datetime(time);
            if looks == Looks::Ahead && today < now.datetime() { today.checked_add(1.day()).ok()? } else { today }
        }
        (None, None) => return None,
    };
    civil.to_zoned(now.time_zone().clone()).ok()
}

/// The text with blanks instead of hyphens between words, as in `noon-tomorrow`; the hyphens of a date are between
/// digits.
fn without_hyphens(text: &str) -> String {
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let joins = |at: usize| !(is_digit(at.checked_sub(1)) && is_digit(at.checked_add(1)));
    text.char_indices().map(|(at, c)| if c == '-' && joins(at) { ' ' } else { c }).collect()
}

fn on_date(date: Date, time: civil::Time, now: &Zoned, looks: Looks) -> Option<civil::DateTime> {
    let at = date.day.to_datetime(time);
    match looks {
        Looks::Ahead if date.without_year && at < now.datetime() => at.checked_add(1.year()).ok(),
        Looks::Back if date.without_year && at.month() > now.month() => at.checked_sub(1.year()).ok(),
        _ => Some(at),
    }
}

/// Takes one word, with the `am` or `pm` after it; returns whether it used that. `None` for anything else, or for a
/// second word of its kind.
fn take(parts: &mut Parts, word: &str, half: Option<&str>, now: &Zoned) -> Option<bool> {
    let named = match word {
        "midnight" => Some(0),
        "elevenses" => Some(11),
        "noon" => Some(12),
        "fika" => Some(15),
        "teatime" => Some(16),
        _ => None,
    };
    if let Some(hour) = named {
        set(&mut parts.time, civil::Time::new(hour, 0, 0, 0).ok()?)?;
        return Some(false);
    }
    match word {
        "today" => set(&mut parts.date, Date { day: now.date(), without_year: false })?,
        "tomorrow" => set(&mut parts.date, Date { day: now.date().tomorrow().ok()?, without_year: false })?,
        _ if word.contains(':') && !word.contains('-') => {
            let (word, glued) = word
                .strip_suffix("am")
                .map(|rest| (rest, Some("am")))
                .unwrap_or_else(|| word.strip_suffix("pm").map_or((word, None), |rest| (rest, Some("pm"))));
            set(&mut parts.time, time_of_day(word, glued.or(half))?)?;
            return Some(glued.is_none() && half.is_some());
        }
        _ => match word.split_once('t') {
            Some((day, clock)) => {
                set(&mut parts.date, date(day, now)?)?;
                set(&mut parts.time, time_of_day(clock, None)?)?;
            }
            None => set(&mut parts.date, date(word, now)?)?,
        },
    }
    Some(false)
}

/// Puts the value into an empty place; `None` if it is occupied.
fn set<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.is_none().then(|| *place = Some(value))
}

fn time_of_day(text: &str, half: Option<&str>) -> Option<civil::Time> {
    let numbers: Vec<i8> = text.split(':').map(two_digits).collect::<Option<_>>()?;
    let (hour, minute, second) = match numbers[..] {
        [hour, minute] => (hour, minute, 0),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    let hour = match half {
        None => hour,
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some("am") => hour % 12,
        Some(_) => hour % 12 + 12,
    };
    civil::Time::new(hour, minute, second, 0).ok()
}

fn date(text: &str, now: &Zoned) -> Option<Date> {
    let with_dashes: Vec<&str> = text.split('-').collect();
    if let [year, month, day] = with_dashes[..] {
        let year = decimal(year).filter(|_| year.len() == 4)?;
        let day = civil::Date::new(i16::try_from(year).ok()?, two_digits(month)?, two_digits(day)?).ok()?;
        return Some(Date { day, without_year: false });
    }
    let pieces: Vec<&str> = match text.split(['/', '.']).collect::<Vec<_>>()[..] {
        [digits] if digits.is_ascii() && digits.len() == 4 => vec![&digits[..2], &digits[2..]],
        [digits] if digits.is_ascii() && digits.len() == 6 => vec![&digits[..2], &digits[2..4], &digits[4..]],
        [_] => return None,
        ref pieces => pieces.to_vec(),
    };
    let (month, day, year) = match pieces[..] {
        [month, day] => (month, day, None),
        [month, day, year] => (month, day, Some(year)),
        _ => return None,
    };
    let (month, day) = (two_digits(month)?, two_digits(day)?);
    let full_year = match year {
        None => now.year(),
        Some(year) if year.len() == 4 => i16::try_from(decimal(year)?).ok()?,
        Some(year) => 2000 + i16::from(two_digits(year)?),
    };
    Some(Date { day: civil::Date::new(full_year, month, day).ok()?, without_year: year.is_none() })
}

fn two_digits(text: &str) -> Option<i8> {
    decimal(text).filter(|_| text.len() <= 2).and_then(|number| i8::try_from(number).ok())
}

fn decimal(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// A point in time as every command prints it: `YYYY-MM-DDTHH:MM:SS` in the local time zone.
pub fn show(moment: Timestamp, zone: &TimeZone) -> String {
    moment.to_jiff().to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

/// The format of points in time for commands that honour `SLURM_TIME_FORMAT` (SL-E-11).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TimeFormat {
    /// As [`show`].
    #[default]
    Standard,
    /// By distance: `14:05:00` today, `Tomorr 14:05`, `Fri 14:05`, else the day and month.
    Relative,
    /// By a pattern as for `strftime`.
    Pattern(String),
}

impl TimeFormat {
    /// The format for a value of `SLURM_TIME_FORMAT`.
    pub fn from_variable(value: Option<&str>) -> Self {
        match value {
            None | Some("" | "standard") => Self::Standard,
            Some("relative") => Self::Relative,
            Some(pattern) => Self::Pattern(pattern.to_owned()),
        }
    }

    /// Prints a point in time. An unusable pattern prints it like [`show`].
    pub fn show(&self, moment: Timestamp, now: &Zoned) -> String {
        let zoned = moment.to_jiff().to_zoned(now.time_zone().clone());
        let pattern = match self {
            Self::Standard => return show(moment, now.time_zone()),
            Self::Relative => relative_pattern(&zoned, now),
            Self::Pattern(pattern) => pattern,
        };
        jiff::fmt::strtime::format(pattern, &zoned).unwrap_or_else(|_| show(moment, now.time_zone()))
    }
}

fn relative_pattern(moment: &Zoned, now: &Zoned) -> &'static str {
    let days = (moment.date() - now.date()).get_days();
    match days {
        0 => "%H:%M:%S",
        1 => "Tomorr %H:%M",
        -1 => "Ystday %H:%M",
        -6..=6 => "%a %H:%M",
        _ if moment.year() == now.year() => "%-d %b %H:%M",
        _ => "%-d %b %Y",
    }
}
