//! The rules of a file in the words of the model (OAR-Q-02, OAR-Q-10).

use super::{
    calendar::{Period, Span},
    file::File,
    rule::{Limits, Pattern},
};
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use muster_schemas::quota::{QuotaPeriod, QuotaRule, QuotaSet, QuotaSpan, QuotaTable, ZoneOffset};
use std::collections::BTreeMap;

/// For this many years of 366 days from now the model knows the changes of the clocks.
const KNOWN_YEARS: i64 = 10;

impl File {
    /// The rules as the system keeps them. Its clocks change as the zone says, for ten years from now on.
    pub fn table(&self, zone: &TimeZone, now: Timestamp) -> QuotaTable {
        QuotaTable {
            source: None,
            // `*` is no type: rules for all types always count.
            kinds: self.counted_types.iter().filter(|kind| *kind != "*").cloned().collect(),
            sets: self.sets.iter().map(|(name, rules)| set(name, rules)).collect(),
            week: self.week.iter().map(period).collect(),
            spans: self.spans.iter().map(span).collect(),
            zone: if self.week.len() > 1 { offsets(zone, now) } else { Vec::new() },
        }
    }
}

fn set(name: &str, rules: &BTreeMap<Pattern, Limits>) -> QuotaSet {
    let rule = |(pattern, limits): (&Pattern, &Limits)| QuotaRule {
        queue: pattern.queue.to_string(),
        account: pattern.project.to_string(),
        kind: pattern.kind.to_string(),
        user: pattern.user.to_string(),
        cores: limits.resources,
        jobs: limits.jobs,
        core_seconds: limits.resource_seconds,
    };
    QuotaSet { name: name.to_owned(), rules: rules.iter().map(rule).collect() }
}

fn period(period: &Period) -> QuotaPeriod {
    // Times of a week and numbers of sets are small.
    let small = |number: i64| u32::try_from(number).unwrap_or(0);
    let set = u32::try_from(period.rules).unwrap_or(u32::MAX);
    QuotaPeriod { begin: small(period.begin), end: small(period.end), set }
}

fn span(span: &Span) -> QuotaSpan {
    let at = muster_schemas::Timestamp::from_unix_seconds;
    QuotaSpan { begin: at(span.begin), end: at(span.end), set: u32::try_from(span.rules).unwrap_or(u32::MAX) }
}

/// The offset of local time now, and each later one with its begin.
fn offsets(zone: &TimeZone, now: Timestamp) -> Vec<ZoneOffset> {
    let at = |instant: Timestamp| muster_schemas::Timestamp(instant.as_microsecond());
    // The begin of the present offset, and not the present time, so that the same file makes the same table.
    let since = zone.preceding(now).next().map_or(muster_schemas::Timestamp(0), |change| at(change.timestamp()));
    let first = ZoneOffset { from: since, seconds: zone.to_offset(now).seconds() };
    let last = now.checked_add((KNOWN_YEARS * 366 * 24).hours()).unwrap_or(Timestamp::MAX);
    let changes = zone.following(now).take_while(|change| change.timestamp() <= last);
    let later = changes.map(|change| ZoneOffset { from: at(change.timestamp()), seconds: change.offset().seconds() });
    std::iter::once(first).chain(later).collect()
}
