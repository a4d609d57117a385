//! When hours and outages let a job start.

use muster_schemas::{
    Timestamp,
    policy::{
        Period,
        routes::{HourRules, Machine},
    },
};

/// How many borders a search for a start passes at most. A policy has fewer in a year.
const MOST_STEPS: usize = 4_000;

/// A job for the tests of time: when it would be over if it started at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Length(pub Option<u64>);

impl Length {
    /// The end of a job that starts then; [`Timestamp::MAX`] for one without a walltime.
    pub fn end(self, start: Timestamp) -> Timestamp {
        let seconds = self.0.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX));
        seconds.map_or(Timestamp::MAX, |seconds| start.plus_seconds(seconds).min(Timestamp::MAX))
    }
}

/// The other hours, and the rules of the usual ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hours<'t> {
    pub other: &'t [Period],
    pub rules: Option<&'t HourRules>,
}

/// Why time does not let a job start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Barrier {
    /// It would use too much of the usual hours.
    Limit,
    /// It would run on past their end.
    Drain(Timestamp),
    /// There is an outage, or none, until then.
    Outage(Option<Timestamp>),
    /// It would not be over before that.
    Border(Timestamp),
}

impl Hours<'_> {
    /// Whether a moment is in the usual hours.
    pub fn is_usual(&self, at: Timestamp) -> bool {
        next_of(self.other, at).is_none_or(|period| at < period.from)
    }

    /// The first moment from `at` on that is in the other hours.
    pub fn other_from(&self, at: Timestamp) -> Option<Timestamp> {
        next_of(self.other, at).map(|period| period.from.max(at))
    }

    /// The time between two moments that lies in the usual hours, in microseconds.
    fn usual_between(&self, from: Timestamp, until: Timestamp) -> i64 {
        let first = self.other.partition_point(|period| period.until <= from);
        let periods = self.other[first..].iter().take_while(|period| period.from < until);
        let other: i64 = periods.map(|period| period.until.min(until).micros_since(period.from.max(from))).sum();
        until.micros_since(from).saturating_sub(other)
    }

    /// The most of the usual hours that a job of this size may use, in microseconds.
    fn limit(&self, size: u32) -> Option<i64> {
        let rules = self.rules?;
        let is_small = rules.small_units > 0 && size <= rules.small_units;
        let seconds = if is_small { rules.small_limit_seconds } else { rules.limit_seconds }?;
        Some(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000))
    }

    /// Why a job may not start at a moment by the rules of the usual hours. `latest` is the end of the last run of its
    /// queue: what runs on into the other hours anyway is no reason to wait.
    pub fn barrier(&self, at: Timestamp, size: u32, length: Length, latest: Option<Timestamp>) -> Option<Barrier> {
        let end = length.end(at);
        if self.limit(size).is_some_and(|limit| self.usual_between(at, end) > limit) {
            return Some(Barrier::Limit);
        }
        let border = self.other_from(at).filter(|border| *border > at)?;
        let drains = self.rules.is_some_and(|rules| rules.drains);
        let is_passed = latest.is_some_and(|latest| latest > border);
        (drains && end >= border && !is_passed).then_some(Barrier::Drain(border))
    }

    /// The first moment after one that a barrier shuts at which that barrier may open.
    fn after(&self, barrier: Barrier, at: Timestamp, size: u32, length: Length) -> Option<Timestamp> {
        let Barrier::Limit = barrier else {
            let Barrier::Drain(border) = barrier else { return None };
            return Some(border);
        };
        let end = length.end(at);
        if end == Timestamp::MAX {
            return None;
        }
        // What it uses changes only in slope, at the moments when it begins or ends at a border.
        let shift = border_after(self.other, at).map(|border| border.micros_since(at));
        let shift_of_end = border_after(self.other, end).map(|border| border.micros_since(end));
        let next = shift.into_iter().chain(shift_of_end).min();
        let falls = self.is_usual(at) && !self.is_usual(end);
        let excess = self.usual_between(at, end).saturating_sub(self.limit(size)?);
        let crossing = falls.then_some(excess.max(1));
        let step = next.into_iter().chain(crossing).filter(|step| *step > 0).min()?;
        Some(at.plus_micros(step))
    }
}

/// Why the outages of a machine do not let a job start at a moment. A job that would end just at a border may not.
pub(super) fn outage(machine: &Machine, in_outages: bool, at: Timestamp, length: Length) -> Option<Barrier> {
    if machine.is_in_doubt {
        return Some(Barrier::Outage(None));
    }
    let next = next_of(&machine.outages, at);
    let current = next.filter(|period| period.from <= at);
    let border = match (in_outages, current) {
        (true, Some(current)) => current.until,
        (true, None) => return Some(Barrier::Outage(next.map(|next| next.from))),
        (false, Some(current)) => return Some(Barrier::Outage(Some(current.until))),
        (false, None) => next?.from,
    };
    (length.end(at) >= border).then_some(Barrier::Border(border))
}

/// The tests of time of a job in one target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock<'t> {
    pub hours: Hours<'t>,
    /// Whether the rules of the usual hours hold.
    pub has_rules: bool,
    pub machine: Option<&'t Machine>,
    pub in_outages: bool,
    pub size: u32,
    pub length: Length,
    /// The end of the last run of the queue.
    pub latest: Option<Timestamp>,
}

impl Clock<'_> {
    /// Why the job may not start at a moment.
    pub fn barrier(&self, at: Timestamp) -> Option<Barrier> {
        let of_outage = self.machine.and_then(|machine| outage(machine, self.in_outages, at, self.length));
        of_outage.or_else(|| {
            let rules = || self.hours.barrier(at, self.size, self.length, self.latest);
            if self.has_rules { rules() } else { None }
        })
    }

    /// The first moment from one on at which nothing keeps the job from starting.
    pub fn open_from(&self, mut at: Timestamp) -> Option<Timestamp> {
        for _ in 0..MOST_STEPS {
            let Some(barrier) = self.barrier(at) else { return Some(at) };
            at = match barrier {
                Barrier::Outage(until) => until?,
                Barrier::Border(border) if self.in_outages => border,
                // It may fit behind the outage that begins there.
                Barrier::Border(border) => next_of(&self.machine?.outages, border)?.until,
                barrier => self.hours.after(barrier, at, self.size, self.length)?,
            };
        }
        None
    }
}

/// The first period that is not over.
fn next_of(periods: &[Period], at: Timestamp) -> Option<&Period> {
    periods.get(periods.partition_point(|period| period.until <= at))
}

fn border_after(periods: &[Period], at: Timestamp) -> Option<Timestamp> {
    let period = next_of(periods, at)?;
    Some(if period.from > at { period.from } else { period.until })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000;

    fn period(from: i64, until: i64) -> Period {
        Period { from: Timestamp(from * SECOND), until: Timestamp(until * SECOND) }
    }

    fn periods(borders: &[i64]) -> Vec<Period> {
        let mut at = 0;
        let mut all = Vec::new();
        for two in borders.chunks_exact(2) {
            all.push(period(at + two[0], at + two[0] + two[1]));
            at += two[0] + two[1];
        }
        all
    }

    proptest! {
        /// PBS-P-10, PBS-P-11, PBS-P-14, PBS-P-16: the first open moment is open, and none before it is.
        #[test]
        fn the_first_open_moment_is_the_first(
            borders in proptest::collection::vec(1i64..40, 0..12),
            outages in proptest::collection::vec(1i64..40, 0..8),
            limit in proptest::option::of(0u64..40),
            small in 0u32..3,
            drains: bool,
            in_outages: bool,
            walltime in proptest::option::weighted(0.9, 0u64..60),
        ) {
            let other = periods(&borders);
            let machine = Machine { outages: periods(&outages), ..Machine::default() };
            let rules = HourRules {
                limit_seconds: limit,
                small_units: small,
                small_limit_seconds: Some(20),
                drains,
                early_end: None,
            };
            let hours = Hours { other: &other, rules: Some(&rules) };
            let clock = Clock {
                hours,
                has_rules: true,
                machine: Some(&machine),
                in_outages,
                size: 2,
                length: Length(walltime),
                latest: None,
            };
            let horizon = 400;
            let first = (0..horizon).find(|at| clock.barrier(Timestamp(at * SECOND)).is_none());
            let found = clock.open_from(Timestamp(0)).map(|at| at.0);
            prop_assert_eq!(found.filter(|at| *at < horizon * SECOND), first.map(|at| at * SECOND));
        }
    }

    /// PBS-P-10: the part of a job in the usual hours counts, whenever it starts.
    #[test]
    fn only_the_part_in_the_usual_hours_counts() {
        let other = [period(100, 200)];
        let rules = HourRules { limit_seconds: Some(30), ..HourRules::default() };
        let hours = Hours { other: &other, rules: Some(&rules) };
        let barrier = |at: i64, seconds| hours.barrier(Timestamp(at * SECOND), 1, Length(Some(seconds)), None);
        assert_eq!(barrier(0, 30), None);
        assert_eq!(barrier(0, 31), Some(Barrier::Limit));
        assert_eq!(barrier(70, 130), None);
        assert_eq!(barrier(69, 130), Some(Barrier::Limit));
        assert_eq!(barrier(100, 130), None);
        assert_eq!(barrier(100, 131), Some(Barrier::Limit));
    }

    /// PBS-P-11: a job may not reach the border, unless a run of its queue passes it.
    #[test]
    fn nothing_runs_on_into_the_other_hours() {
        let other = [period(100, 200)];
        let rules = HourRules { drains: true, ..HourRules::default() };
        let hours = Hours { other: &other, rules: Some(&rules) };
        let barrier = |seconds, latest: i64| {
            hours.barrier(Timestamp(0), 1, Length(Some(seconds)), Some(Timestamp(latest * SECOND)))
        };
        let border = Timestamp(100 * SECOND);
        assert_eq!(barrier(99, 0), None);
        assert_eq!(barrier(100, 100), Some(Barrier::Drain(border)));
        assert_eq!(barrier(100, 101), None);
        assert_eq!(hours.barrier(border, 1, Length(Some(500)), None), None, "the other hours have no such rule");
    }

    /// PBS-P-14: a job that ends just at the border of an outage waits.
    #[test]
    fn outages_need_a_moment_more() {
        let machine = Machine { outages: vec![period(100, 200)], ..Machine::default() };
        let barrier =
            |in_outages, at: i64, seconds| outage(&machine, in_outages, Timestamp(at * SECOND), Length(Some(seconds)));
        assert_eq!(barrier(false, 0, 99), None);
        assert_eq!(barrier(false, 0, 100), Some(Barrier::Border(Timestamp(100 * SECOND))));
        assert_eq!(barrier(false, 100, 1), Some(Barrier::Outage(Some(Timestamp(200 * SECOND)))));
        assert_eq!(barrier(true, 100, 99), None);
        assert_eq!(barrier(true, 100, 100), Some(Barrier::Border(Timestamp(200 * SECOND))));
        assert_eq!(barrier(true, 200, 1), Some(Barrier::Outage(None)));
        let doubtful = Machine { is_in_doubt: true, ..Machine::default() };
        assert_eq!(outage(&doubtful, false, Timestamp(0), Length(Some(1))), Some(Barrier::Outage(None)));
    }
}
