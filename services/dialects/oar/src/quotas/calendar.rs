//! Rules that change with the time of the week, and for single spans (OAR-Q-10).

use super::rule::Rules;
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

/// The seconds of a week.
pub const WEEK: i64 = 7 * 86_400;

/// A part of every week, in seconds since Monday 00:00 of the clocks there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its begin.
    pub begin: i64,
    /// Its end, up to [`WEEK`].
    pub end: i64,
    /// The number of its rules.
    pub rules: usize,
}

/// A span that goes before all periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its begin, in seconds since the epoch.
    pub begin: i64,
    /// Its end.
    pub end: i64,
    /// The number of its rules.
    pub rules: usize,
}

/// The rules of all times.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// The sets of rules.
    pub rules: Vec<Rules>,
    /// The week, in order and without gap.
    pub week: Vec<Period>,
    /// Single spans, in order of their begin.
    pub spans: Vec<Span>,
    /// The zone of the week.
    pub zone: TimeZone,
}

impl Calendar {
    /// The same rules at all times.
    pub fn always(rules: Rules) -> Self {
        let week = vec![Period { begin: 0, end: WEEK, rules: 0 }];
        Self { rules: vec![rules], week, spans: Vec::new(), zone: TimeZone::UTC }
    }

    /// The rules at a moment.
    pub fn at(&self, moment: i64) -> &Rules {
        let span = self.spans.iter().find(|span| span.begin <= moment && moment < span.end);
        let number = span.map(|span| span.rules).or_else(|| {
            let second = self.second_of_week(moment)?;
            let period = self.week.iter().find(|period| period.begin <= second && second < period.end);
            period.or(self.week.last()).map(|period| period.rules)
        });
        &self.rules[number.unwrap_or_default()]
    }

    fn second_of_week(&self, moment: i64) -> Option<i64> {
        let local = self.zone.to_datetime(Timestamp::from_second(moment).ok()?);
        let days = i64::from(local.weekday().to_monday_zero_offset());
        Some(days * 86_400 + seconds_of_day(local))
    }

    /// The moments after one and up to another at which other rules may begin.
    pub fn changes(&self, from: i64, to: i64) -> Vec<i64> {
        let spans = self.spans.iter().flat_map(|span| [span.begin, span.end]);
        let mut changes: Vec<i64> = spans.filter(|moment| from < *moment && *moment <= to).collect();
        if self.week.len() > 1 {
            changes.extend(self.weekly_changes(from, to));
        }
        changes.sort_unstable();
        changes.dedup();
        changes
    }

    /// The borders of the weeks, and the moments at which clocks change: these may lead over a border, or back over it.
    fn weekly_changes(&self, from: i64, to: i64) -> Vec<i64> {
        let is_between = |moment: &i64| from < *moment && *moment <= to;
        let mut changes: Vec<i64> = self.clock_changes(from).take_while(|moment| *moment <= to).collect();
        let Some(mut monday) = self.monday_before(from) else { return changes };
        while let Some(week) = self.borders_of(monday) {
            changes.extend(week.iter().copied().filter(is_between));
            let Ok(next) = monday.checked_add(jiff::Span::new().days(7)) else { break };
            monday = next;
            if week.first().is_none_or(|first| *first > to) {
                break;
            }
        }
        changes
    }

    fn clock_changes(&self, from: i64) -> impl Iterator<Item = i64> {
        let from = Timestamp::from_second(from).ok();
        let following = from.into_iter().flat_map(|from| self.zone.following(from));
        following.map(|change| change.timestamp().as_second())
    }

    fn monday_before(&self, moment: i64) -> Option<DateTime> {
        let local = self.zone.to_datetime(Timestamp::from_second(moment).ok()?);
        let days = i64::from(local.weekday().to_monday_zero_offset());
        let monday = local.date().checked_sub(jiff::Span::new().days(days)).ok()?;
        Some(monday.at(0, 0, 0, 0))
    }

    /// The begins of the periods of the week that begins on a Monday. A local time that is doubled has two.
    fn borders_of(&self, monday: DateTime) -> Option<Vec<i64>> {
        let mut borders = Vec::new();
        for period in &self.week {
            let (days, seconds) = (period.begin / 86_400, period.begin % 86_400);
            let local = monday.checked_add(jiff::Span::new().days(days).seconds(seconds)).ok()?;
            let instants = [
                self.zone.to_ambiguous_timestamp(local).earlier().ok()?.as_second(),
                self.zone.to_ambiguous_timestamp(local).later().ok()?.as_second(),
            ];
            borders.extend(instants);
        }
        Some(borders)
    }
}

fn seconds_of_day(local: DateTime) -> i64 {
    i64::from(local.hour()) * 3600 + i64::from(local.minute()) * 60 + i64::from(local.second())
}
