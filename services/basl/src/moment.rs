//! Dates and times of day, each of which a program may leave out.

use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time},
    tz::TimeZone,
};
use std::fmt;

/// The latest second of a minute that programs may write; two leap seconds, as in C.
const LAST_SECOND: u8 = 61;
/// The latest year that programs may write.
const LAST_YEAR: i64 = 9999;

/// Year, month and day.
type Day = (u16, u8, u8);
/// Hour, minute and second.
type TimeOfDay = (u8, u8, u8);

/// A `DateTime`: without a date it means today, without a time it means now (PBS-X-06).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Year, month and day.
    date: Option<Day>,
    /// Hour, minute and second.
    time: Option<TimeOfDay>,
}

impl Moment {
    /// Neither date nor time: the moment for "not known".
    pub(crate) const UNSET: Self = Self { date: None, time: None };

    /// A date, a time or both, if they exist.
    pub(crate) fn new(date: Option<(i64, i64, i64)>, time: Option<(i64, i64, i64)>) -> Option<Self> {
        let date = match date {
            Some((year, month, day)) => Some(checked_date(year, month, day)?),
            None => None,
        };
        let time = match time {
            Some((hour, minute, second)) => Some(checked_time(hour, minute, second)?),
            None => None,
        };
        Some(Self { date, time })
    }

    /// Whether it names a date.
    pub(crate) const fn has_date(self) -> bool {
        self.date.is_some()
    }

    /// Year, month, day, then hour, minute, second.
    pub(crate) const fn parts(self) -> (Option<Day>, Option<TimeOfDay>) {
        (self.date, self.time)
    }

    /// The register that holds it: the date above the time, each with a bit that says that it is there.
    pub(crate) fn to_word(self) -> i64 {
        let date = self
            .date
            .map_or(0, |(year, month, day)| 1 << 31 | i64::from(year) << 9 | i64::from(month) << 5 | i64::from(day));
        let time = self.time.map_or(0, |(hour, minute, second)| {
            1 << 31 | i64::from(hour) << 16 | i64::from(minute) << 8 | i64::from(second)
        });
        date << 32 | time
    }

    /// What a register holds.
    pub(crate) const fn from_word(word: i64) -> Self {
        let (date, time) = ((word >> 32) as u32, word as u32);
        let parts = ((date >> 9 & 0x3fff) as u16, (date >> 5 & 0xf) as u8, (date & 0x1f) as u8);
        let date = if date >> 31 == 1 { Some(parts) } else { None };
        let parts = ((time >> 16 & 0xff) as u8, (time >> 8 & 0xff) as u8, (time & 0xff) as u8);
        let time = if time >> 31 == 1 { Some(parts) } else { None };
        Self { date, time }
    }
}

fn checked_date(year: i64, month: i64, day: i64) -> Option<Day> {
    let parts = (u16::try_from(year).ok()?, u8::try_from(month).ok()?, u8::try_from(day).ok()?);
    let is_date = year <= LAST_YEAR && civil_date(parts).is_some();
    is_date.then_some(parts)
}

fn checked_time(hour: i64, minute: i64, second: i64) -> Option<TimeOfDay> {
    let parts = (u8::try_from(hour).ok()?, u8::try_from(minute).ok()?, u8::try_from(second).ok()?);
    (parts.0 <= 23 && parts.1 <= 59 && parts.2 <= LAST_SECOND).then_some(parts)
}

fn civil_date((year, month, day): Day) -> Option<Date> {
    Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// As PBS printed it: `(05/01/1997@14:32:00)`.
impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(")?;
        if let Some((year, month, day)) = self.date {
            write!(formatter, "{month:02}/{day:02}/{year:04}")?;
        }
        if self.date.is_some() && self.time.is_some() {
            formatter.write_str("@")?;
        }
        if let Some((hour, minute, second)) = self.time {
            write!(formatter, "{hour:02}:{minute:02}:{second:02}")?;
        }
        formatter.write_str(")")
    }
}

/// The time of a cycle and the zone in which programs read clocks and calendars.
#[derive(Clone, Debug)]
pub struct Clock {
    now: i64,
    zone: TimeZone,
    local: DateTime,
}

impl Clock {
    /// A clock that stands at a time in seconds since the start of 1970. Times before year 1 or after year 9999 are
    /// moved into that range.
    pub fn new(now: i64, zone: TimeZone) -> Self {
        let least = zone.to_timestamp(Date::constant(1, 1, 2).at(0, 0, 0, 0)).map_or(0, Timestamp::as_second);
        let most =
            zone.to_timestamp(Date::constant(9999, 12, 29).at(0, 0, 0, 0)).map_or(i64::MAX, Timestamp::as_second);
        let now = now.clamp(least, most);
        let local = zone.to_datetime(timestamp(now));
        Self { now, zone, local }
    }

    /// The time in seconds since the start of 1970.
    pub const fn now(&self) -> i64 {
        self.now
    }

    /// What `datetimeGet` gives.
    pub(crate) fn moment(&self) -> Moment {
        self.moment_at(self.now)
    }

    /// Date and time of a number of seconds since the start of 1970; nothing for years that programs cannot write.
    pub(crate) fn moment_at(&self, seconds: i64) -> Moment {
        let Ok(time) = Timestamp::from_second(seconds) else { return Moment::UNSET };
        let local = self.zone.to_datetime(time);
        let date = (i64::from(local.year()), i64::from(local.month()), i64::from(local.day()));
        let time = (i64::from(local.hour()), i64::from(local.minute()), i64::from(local.second()));
        Moment::new(Some(date), Some(time)).unwrap_or(Moment::UNSET)
    }

    /// Seconds since the start of 1970.
    pub(crate) fn seconds(&self, moment: Moment) -> i64 {
        self.seconds_on(moment, 0)
    }

    /// As [`Self::seconds`], but a moment without a date is some days from today.
    fn seconds_on(&self, moment: Moment, days: i64) -> i64 {
        if moment == Moment::UNSET {
            return self.now;
        }
        let date = moment.date.and_then(civil_date).unwrap_or_else(|| {
            let shift = jiff::Span::new().days(days.clamp(-1, 1));
            self.local.date().saturating_add(shift)
        });
        let (time, leap) = match moment.time {
            Some((hour, minute, second)) => (civil_time(hour, minute, second), i64::from(second.saturating_sub(59))),
            None => (self.local.time(), 0),
        };
        self.zone.to_timestamp(date.to_datetime(time)).map_or(self.now, |time| time.as_second().saturating_add(leap))
    }

    /// Whether a range contains a moment. One of times only whose end is before its start runs past midnight.
    pub(crate) fn contains(&self, low: Moment, high: Moment, moment: Moment) -> bool {
        let at = self.seconds(moment);
        let is_between = |first, last| self.seconds_on(low, first) <= at && at <= self.seconds_on(high, last);
        let is_over_midnight = !low.has_date() && !high.has_date() && self.seconds(low) > self.seconds(high);
        if is_over_midnight { is_between(0, 1) || is_between(-1, 0) } else { is_between(0, 0) }
    }
}

fn timestamp(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Leap seconds are added afterwards.
fn civil_time(hour: u8, minute: u8, second: u8) -> Time {
    let part = |value: u8, most: u8| i8::try_from(value.min(most)).unwrap_or_default();
    Time::new(part(hour, 23), part(minute, 59), part(second, 59), 0).unwrap_or(Time::midnight())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(hour: i64, minute: i64, second: i64) -> Moment {
        Moment::new(None, Some((hour, minute, second))).expect("a time")
    }

    fn date(year: i64, month: i64, day: i64) -> Moment {
        Moment::new(Some((year, month, day)), None).expect("a date")
    }

    /// Wednesday 1998-05-15 12:00:00 UTC.
    fn noon() -> Clock {
        Clock::new(895_233_600, TimeZone::UTC)
    }

    #[test]
    fn moments_are_packed_and_shown() {
        for (moment, shown) in [
            (Moment::UNSET, "()"),
            (time(0, 0, 0), "(00:00:00)"),
            (time(23, 59, 61), "(23:59:61)"),
            (date(1997, 4, 4), "(04/04/1997)"),
            (noon().moment(), "(05/15/1998@12:00:00)"),
        ] {
            assert_eq!(Moment::from_word(moment.to_word()), moment);
            assert_eq!(moment.to_string(), shown);
        }
        assert_eq!(Moment::new(Some((1998, 2, 29)), None), None);
        assert_eq!(Moment::new(Some((10_000, 1, 1)), None), None);
        assert_eq!(Moment::new(None, Some((24, 0, 0))), None);
        assert_eq!(Moment::new(None, Some((0, -1, 0))), None);
    }

    /// PBS-X-06: today without a date, now without a time.
    #[test]
    fn what_is_left_out_is_today_or_now() {
        let clock = noon();
        assert_eq!(clock.seconds(time(8, 0, 0)), clock.now() - 4 * 3600);
        assert_eq!(clock.seconds(date(1998, 5, 16)), clock.now() + 86_400);
        assert_eq!(clock.seconds(Moment::UNSET), clock.now());
        assert_eq!(clock.seconds(time(23, 59, 60)), clock.now() + 12 * 3600);
        assert_eq!(clock.moment_at(i64::MAX), Moment::UNSET);
    }

    /// PBS-X-06
    #[test]
    fn a_range_of_times_runs_past_midnight() {
        let clock = noon();
        let night = |at| clock.contains(time(18, 0, 0), time(6, 0, 0), at);
        assert!(night(time(23, 0, 0)) && night(time(3, 0, 0)) && night(time(18, 0, 0)) && night(time(6, 0, 0)));
        assert!(!night(time(12, 0, 0)) && !night(time(6, 0, 1)) && !night(Moment::UNSET));
        assert!(clock.contains(time(8, 0, 0), time(17, 59, 59), clock.moment()));
        assert!(clock.contains(date(1998, 5, 14), date(1998, 5, 16), clock.moment()));
        assert!(!clock.contains(date(1998, 5, 16), date(1998, 5, 17), clock.moment()));
    }

    #[test]
    fn absurd_times_are_moved_into_the_calendar() {
        for now in [i64::MIN, i64::MAX, 0, -62_135_596_800] {
            for zone in [TimeZone::UTC, TimeZone::fixed(jiff::tz::offset(14))] {
                let clock = Clock::new(now, zone);
                let moments = [time(23, 59, 61), clock.moment(), date(9999, 12, 31), date(0, 1, 1)];
                for moment in moments {
                    clock.seconds(moment);
                    clock.contains(time(18, 0, 0), time(6, 0, 0), moment);
                }
            }
        }
    }
}
