//! Prime time and holidays in `holidays` (PBS-T-01 to PBS-T-08).

mod reading;

pub use reading::read;

use crate::{local_time, mode::Mode, sched_config::HolidaysStale};
use jiff::{
    Timestamp, ToSpan,
    civil::{Date, Time, Weekday},
    tz::TimeZone,
};
use std::{collections::BTreeMap, fmt};

/// The number of days ahead in which a change of mode is looked for: all weekdays and the holidays of a year.
const DAYS_AHEAD: i32 = 400;

/// When prime or non-prime time starts on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At this minute of the day, from 0 to 1439.
    At(u16),
    /// It lasts all day.
    All,
    /// Never.
    None,
}

/// The hours of a kind of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hours {
    /// When prime time starts.
    pub prime: Start,
    /// When non-prime time starts.
    pub non_prime: Start,
}

/// A holiday of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holiday {
    /// The number of the day in the year, from 1 to 366.
    pub day: u16,
    /// The written date and the name.
    pub words: String,
}

/// Prime time and holidays of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holidays {
    /// The year of the file. Without one it is prime at all times.
    pub year: Option<i16>,
    /// Hours by weekday, Monday first; prime all day if there are none.
    pub hours: [Option<Hours>; 7],
    /// Holidays by the number of the day.
    pub holidays: BTreeMap<u16, Holiday>,
}

impl Hours {
    /// The mode of the whole day, if it does not change (PBS-T-02, PBS-T-03).
    pub const fn all_day(self) -> Option<Mode> {
        match (self.prime, self.non_prime) {
            // Both `all` or both `none` is prime, too: each comes first in its order.
            (Start::All, _) | (Start::None, Start::None) => Some(Mode::Prime),
            (_, Start::All) | (Start::None, Start::At(_)) => Some(Mode::NonPrime),
            (Start::At(_), Start::None) => Some(Mode::Prime),
            (Start::At(prime), Start::At(non_prime)) if prime == non_prime => Some(Mode::NonPrime),
            (Start::At(_), Start::At(_)) => None,
        }
    }
}

impl fmt::Display for Start {
    /// `04:00`, `all` or `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(minute) => write!(f, "{:02}:{:02}", minute / 60, minute % 60),
            Self::All => f.write_str("all"),
            Self::None => f.write_str("none"),
        }
    }
}

impl Holidays {
    /// The hours of a weekday, if there are any.
    pub fn hours_on(&self, weekday: Weekday) -> Option<Hours> {
        let index = usize::try_from(weekday.to_monday_zero_offset()).ok()?;
        self.hours.get(index).copied().flatten()
    }

    /// The mode at a time in a time zone.
    pub fn mode(&self, now: Timestamp, zone: &TimeZone, stale: HolidaysStale) -> Mode {
        let date = zone.to_datetime(now).date();
        let hours = match self.day(date, stale) {
            Day::Same(mode) => return mode,
            Day::Changes(hours) => hours,
        };
        let start = |minute| start_of(minute, date, zone);
        let (Some(prime), Some(non_prime)) = (start(hours.0), start(hours.1)) else { return Mode::Prime };
        let is_prime =
            if hours.0 < hours.1 { prime <= now && now < non_prime } else { now < non_prime || prime <= now };
        if is_prime { Mode::Prime } else { Mode::NonPrime }
    }

    /// The next change of mode after this time, and the new mode (PBS-T-08); `None` if there is none within 400 days.
    pub fn next_change(&self, now: Timestamp, zone: &TimeZone, stale: HolidaysStale) -> Option<(Timestamp, Mode)> {
        let mode = self.mode(now, zone, stale);
        let today = zone.to_datetime(now).date();
        // A clock that is put back past midnight changes the day, too.
        let mut clock_changes = zone.following(now).map(|change| change.timestamp()).peekable();
        for ahead in 0..DAYS_AHEAD {
            let date = today.checked_add(ahead.days()).ok()?;
            let mut instants = self.borders(date, zone, stale);
            let end = date.tomorrow().ok().and_then(|tomorrow| start_of(0, tomorrow, zone))?;
            while let Some(change) = clock_changes.next_if(|change| *change <= end) {
                instants.push(change);
            }
            instants.sort_unstable();
            let changed = |instant: Timestamp| {
                let new = self.mode(instant, zone, stale);
                (instant > now && new != mode).then_some((instant, new))
            };
            if let Some(found) = instants.into_iter().find_map(changed) {
                return Some(found);
            }
        }
        None
    }

    /// The warning that the file is for another year than this date, unless it was given on this date already
    /// (PBS-T-05).
    pub fn stale_warning(&self, today: Date, warned: Option<Date>) -> Option<String> {
        let year = self.year.filter(|_| self.is_stale(today) && warned != Some(today))?;
        Some(format!("holidays: the file is for {year}, and it is {}", today.year()))
    }

    /// Whether the file is for another year than this date.
    pub fn is_stale(&self, date: Date) -> bool {
        self.year.is_some_and(|year| year != date.year())
    }

    /// Whether a date is a holiday (PBS-T-04, PBS-T-05).
    pub fn is_holiday(&self, date: Date, stale: HolidaysStale) -> bool {
        let applies = stale == HolidaysStale::Apply || !self.is_stale(date);
        let day = u16::try_from(date.day_of_year()).unwrap_or_default();
        applies && self.year.is_some() && self.holidays.contains_key(&day)
    }

    fn day(&self, date: Date, stale: HolidaysStale) -> Day {
        if self.year.is_none() {
            return Day::Same(Mode::Prime);
        }
        if self.is_holiday(date, stale) {
            return Day::Same(Mode::NonPrime);
        }
        let Some(hours) = self.hours_on(date.weekday()) else { return Day::Same(Mode::Prime) };
        match (hours.all_day(), hours.prime, hours.non_prime) {
            (None, Start::At(prime), Start::At(non_prime)) => Day::Changes((prime, non_prime)),
            (mode, ..) => Day::Same(mode.unwrap_or(Mode::Prime)),
        }
    }

    /// The instants of a day at which the mode may change.
    fn borders(&self, date: Date, zone: &TimeZone, stale: HolidaysStale) -> Vec<Timestamp> {
        let minutes = match self.day(date, stale) {
            Day::Same(_) => vec![0],
            Day::Changes((prime, non_prime)) => vec![0, prime, non_prime],
        };
        // If midnight is doubled, the day begins twice.
        let midnight = local_time::second_instant(date.to_datetime(Time::midnight()), zone);
        minutes.into_iter().filter_map(|minute| start_of(minute, date, zone)).chain(midnight).collect()
    }
}

/// A day of the calendar.
enum Day {
    /// The mode does not change.
    Same(Mode),
    /// The minutes at which prime and non-prime time start; they differ.
    Changes((u16, u16)),
}

/// The instant of a minute of a day.
fn start_of(minute: u16, date: Date, zone: &TimeZone) -> Option<Timestamp> {
    let (hour, minute) = (i8::try_from(minute / 60).ok()?, i8::try_from(minute % 60).ok()?);
    local_time::instant(date.to_datetime(Time::new(hour, minute, 0, 0).ok()?), zone)
}
