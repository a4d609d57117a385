//! Tables of jobs that are repeated at certain times, one for each user.

use crate::{
    ids::{JobId, Sequence},
    job::JobSpec,
    resources::IndexSet,
    time::Timestamp,
};
use jiff::{
    civil::{Date, Weekday},
    tz::TimeZone,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The farthest that the next time is looked for: the longest time between two leap days is eight years.
const MAX_DAYS: u32 = 366 * 9;

/// When a job is repeated: on the minute, at each time that all sets contain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Minutes, 0 to 59.
    pub minutes: IndexSet,
    /// Hours, 0 to 23.
    pub hours: IndexSet,
    /// Days of the month, 1 to 31.
    pub days: IndexSet,
    /// Months, 1 to 12.
    pub months: IndexSet,
    /// Days of the week, 0 to 6; 0 is Sunday.
    pub weekdays: IndexSet,
    /// Whether a day need only be in one of `days` and `weekdays`: both are restricted.
    pub is_either_day: bool,
    /// The time zone of these times, as a rule of POSIX such as `CET-1CEST,M3.5.0,M10.5.0/3`: a rule stays the same on every
    /// machine.
    pub zone: String,
}

impl Schedule {
    /// The first of its times after a moment; `None` if there is none in nine years, or the zone is not valid.
    pub fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        let zone = TimeZone::posix(&self.zone).ok()?;
        let from = moment.to_jiff();
        let mut date = zone.to_datetime(from).date();
        for _ in 0..MAX_DAYS {
            if self.has(date) {
                let times = self.hours.iter().flat_map(|hour| self.minutes.iter().map(move |minute| (hour, minute)));
                let moments = times.filter_map(|(hour, minute)| {
                    let time = date.at(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, 0, 0);
                    // A time that is left out or comes twice when clocks change is that of the rule before the change.
                    zone.to_timestamp(time).ok()
                });
                let next = moments.filter(|next| *next > from).min();
                if let Some(next) = next {
                    return Some(Timestamp(next.as_microsecond()));
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn has(&self, date: Date) -> bool {
        let number = |value: i8| u32::try_from(value).unwrap_or(0);
        let day = self.days.contains(number(date.day()));
        let weekday = self.weekdays.contains(number(Weekday::to_sunday_zero_offset(date.weekday())));
        let is_day = if self.is_either_day { day || weekday } else { day && weekday };
        is_day && self.months.contains(number(date.month()))
    }
}

/// A line of a table that submits a job, with the lines above it that belong to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CronLines {
    /// The first of its lines, from 0.
    pub first: u32,
    /// The last of its lines.
    pub last: u32,
    /// Its times.
    pub schedule: Schedule,
}

/// A job of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CronEntry {
    /// Its lines.
    pub lines: CronLines,
    /// The job that is submitted; its begin time is the first of its times.
    pub spec: JobSpec,
}

/// A table in place of the caller's present one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CrontabRequest {
    /// Its text; an empty one removes the table.
    pub text: String,
    /// Its jobs.
    pub entries: Vec<CronEntry>,
    /// Whose table it is: that of the caller, if nobody is named. Only administrators can remove those of others.
    pub user: Option<String>,
}

/// A job of a table that is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CronJob {
    /// The job.
    pub job: JobId,
    /// Its lines.
    pub lines: CronLines,
}

/// The table of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CrontabView {
    /// Whose it is.
    pub user: String,
    /// Its text; `null` if there is none.
    pub text: Option<String>,
    /// Its jobs.
    pub jobs: Vec<CronJob>,
    /// The lines of jobs that were cancelled or refused, from 0: they are not repeated any more.
    pub disabled: IndexSet,
    /// The answer shows the state after this record.
    pub sequence: Sequence,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> IndexSet {
        text.parse().expect("a set")
    }

    fn daily(hours: &str, minutes: &str, zone: &str) -> Schedule {
        Schedule {
            minutes: set(minutes),
            hours: set(hours),
            days: set("1-31"),
            months: set("1-12"),
            weekdays: set("0-6"),
            is_either_day: false,
            zone: zone.into(),
        }
    }

    #[track_caller]
    fn check(schedule: &Schedule, from: &str, expected: &[&str]) {
        let stamp = |text: &str| Timestamp(text.parse::<jiff::Timestamp>().expect("a moment").as_microsecond());
        let mut moment = stamp(from);
        for next in expected {
            moment = schedule.next_after(moment).expect("a time");
            assert_eq!(moment, stamp(next));
        }
    }

    #[test]
    fn times_follow_each_other() {
        check(
            &daily("0-23", "0,30", "UTC0"),
            "2026-11-20T08:20:00Z",
            &["2026-11-20T08:30:00Z", "2026-11-20T09:00:00Z"],
        );
        check(&daily("3", "0", "UTC0"), "2026-11-20T03:00:00Z", &["2026-11-21T03:00:00Z"]);
        let monthly = Schedule { days: set("31"), ..daily("0", "0", "UTC0") };
        check(&monthly, "2026-11-20T08:20:00Z", &["2026-12-31T00:00:00Z", "2027-01-31T00:00:00Z"]);
        let leap = Schedule { days: set("29"), months: set("2"), ..daily("0", "0", "UTC0") };
        check(&leap, "2026-11-20T08:20:00Z", &["2028-02-29T00:00:00Z"]);
        let never = Schedule { days: set("30"), months: set("2"), ..daily("0", "0", "UTC0") };
        assert_eq!(never.next_after(Timestamp(0)), None);
        // 2026-11-20 is a Friday.
        let sundays = Schedule { weekdays: set("0"), ..daily("0", "0", "UTC0") };
        check(&sundays, "2026-11-20T08:20:00Z", &["2026-11-22T00:00:00Z"]);
        let either = Schedule { weekdays: set("0"), days: set("21"), is_either_day: true, ..daily("0", "0", "UTC0") };
        check(&either, "2026-11-20T08:20:00Z", &["2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"]);
    }

    /// Clocks are put forward on 2026-03-29 and back on 2026-10-25.
    #[test]
    fn a_time_is_that_of_the_clocks_of_its_zone() {
        let at_night = daily("2", "30", "CET-1CEST,M3.5.0,M10.5.0/3");
        check(
            &at_night,
            "2026-03-27T12:00:00Z",
            &["2026-03-28T01:30:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"],
        );
        check(&at_night, "2026-10-24T12:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        assert_eq!(daily("2", "30", "no zone").next_after(Timestamp(0)), None);
    }
}
