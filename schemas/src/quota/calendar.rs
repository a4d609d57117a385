//! When which rules hold (OAR-Q-10).

use super::{QuotaTable, periods::WEEK_SECONDS};
use crate::Timestamp;

/// 1970-01-01 was a Thursday: the week before it began this much earlier.
const MONDAY_BEFORE_EPOCH: i64 = 3 * 86_400;

impl QuotaTable {
    /// The number of the rules that hold at a moment.
    pub fn set_at(&self, at: Timestamp) -> usize {
        let of_span = self.spans.iter().find(|span| span.begin <= at && at < span.end).map(|span| span.set);
        let of_week = || {
            let second = self.second_of_week(at);
            self.week.iter().find(|period| i64::from(period.end) > second).map(|period| period.set)
        };
        of_span.or_else(of_week).unwrap_or(0) as usize
    }

    /// The first moment after another at which different rules may hold.
    pub fn next_change(&self, after: Timestamp) -> Option<Timestamp> {
        let of_spans = self.spans.iter().flat_map(|span| [span.begin, span.end]);
        let of_week = if self.week.len() > 1 { self.next_border(after) } else { None };
        of_spans.chain(of_week).filter(|at| *at > after).min()
    }

    /// The next border of the week, or the next change of the clocks if that is earlier: it may lead into another period.
    fn next_border(&self, after: Timestamp) -> Option<Timestamp> {
        let second = self.second_of_week(after);
        let period = self.week.iter().find(|period| i64::from(period.end) > second)?;
        let left = i64::from(period.end) - second;
        let border = Timestamp::from_unix_seconds(after.unix_seconds().saturating_add(left));
        let clocks = self.zone.iter().skip(1).map(|offset| offset.from).find(|from| *from > after);
        Some(clocks.map_or(border, |clocks| border.min(clocks)))
    }

    /// The last moment that the table itself names: from then on each week is like the one before.
    pub fn last_named(&self) -> Option<Timestamp> {
        self.spans.iter().map(|span| span.end).max()
    }

    fn second_of_week(&self, at: Timestamp) -> i64 {
        let known = self.zone.partition_point(|offset| offset.from <= at);
        let offset = self.zone.get(known.saturating_sub(1)).map_or(0, |offset| i64::from(offset.seconds));
        let local = at.unix_seconds().saturating_add(offset).saturating_add(MONDAY_BEFORE_EPOCH);
        local.rem_euclid(i64::from(WEEK_SECONDS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::periods::{QuotaPeriod, QuotaSpan, ZoneOffset};

    const DAY: i64 = 86_400;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_seconds(seconds)
    }

    /// Monday 08:00 to Friday 19:00 has other rules than the rest.
    fn table() -> QuotaTable {
        let period = |begin, end, set| QuotaPeriod { begin, end, set };
        let week = vec![
            period(0, 8 * 3600, 0),
            period(8 * 3600, 4 * 86_400 + 19 * 3600, 1),
            period(4 * 86_400 + 19 * 3600, WEEK_SECONDS, 0),
        ];
        QuotaTable { week, ..QuotaTable::default() }
    }

    /// OAR-Q-10: 1970-01-05 was a Monday.
    #[test]
    fn the_week_begins_on_monday_of_local_time() {
        let monday = 4 * DAY;
        let mut table = table();
        let sets = |table: &QuotaTable| [0, 8 * 3600 - 1, 8 * 3600].map(|second| table.set_at(at(monday + second)));
        assert_eq!(sets(&table), [0, 0, 1]);
        assert_eq!(table.next_change(at(monday)), Some(at(monday + 8 * 3600)));
        assert_eq!(table.next_change(at(monday + 8 * 3600)), Some(at(monday + 4 * DAY + 19 * 3600)));
        assert_eq!(table.set_at(at(-3 * DAY - 1)), 0, "the Sunday before");
        table.zone = vec![ZoneOffset { from: at(0), seconds: 3600 }];
        assert_eq!(sets(&table), [0, 1, 1]);
        assert_eq!(table.next_change(at(monday)), Some(at(monday + 7 * 3600)));
    }

    /// OAR-Q-10
    #[test]
    fn clocks_that_change_lead_over_a_border() {
        let monday = 4 * DAY;
        let change = at(monday + 7 * 3600 + 1800);
        let zone = vec![ZoneOffset { from: at(0), seconds: 0 }, ZoneOffset { from: change, seconds: 3600 }];
        let table = QuotaTable { zone, ..table() };
        assert_eq!(table.next_change(at(monday)), Some(change));
        assert_eq!((table.set_at(at(monday + 7 * 3600)), table.set_at(change)), (0, 1));
    }

    /// OAR-Q-10: after a span the rules of that moment hold.
    #[test]
    fn spans_go_before_the_week() {
        let span = QuotaSpan { begin: at(4 * DAY), end: at(5 * DAY), set: 2 };
        let table = QuotaTable { spans: vec![span], ..table() };
        assert_eq!(
            [at(4 * DAY - 1), at(4 * DAY), at(5 * DAY - 1), at(5 * DAY)].map(|at| table.set_at(at)),
            [0, 2, 2, 1]
        );
        assert_eq!(table.next_change(at(4 * DAY - 1)), Some(at(4 * DAY)));
        assert_eq!(table.last_named(), Some(at(5 * DAY)));
    }

    #[test]
    fn without_a_week_the_first_rules_always_hold() {
        let table = QuotaTable::default();
        assert_eq!((table.set_at(at(5)), table.next_change(at(5))), (0, None));
    }
}
