//! Prime time, outages and stored usage of the presets.

use crate::support::{at, zurich};
use jiff::{Timestamp, civil::date, tz::TimeZone};
use muster_pbs_policy::{
    findings::Findings,
    holidays::{self, Holidays},
    outages, past_usage,
    preset::{Enforced, Preset, PresetConfig},
    prime::non_prime_periods,
    sched_config::HolidaysStale,
    values::Decimal,
};
use proptest::prelude::*;

fn config(start: u64, end: u64) -> PresetConfig {
    PresetConfig {
        enforce_prime_time: Enforced::Always,
        prime_time_start: start,
        prime_time_end: end,
        ..PresetConfig::new(Preset::SgiOrigin)
    }
}

fn new_year() -> Holidays {
    holidays::read(b"YEAR 2026\n1 Jan 1 New Year\n", &mut Findings::new("holidays"))
}

/// The times that are not prime in a week, as hours of the local week that begins with Monday 2025-12-29.
fn hours(config: &PresetConfig, zone: &TimeZone) -> Vec<(i64, i64)> {
    let (from, until) = (at("2025-12-29T00:00:00", zone), at("2026-01-05T00:00:00", zone));
    let periods = non_prime_periods(config, &new_year(), HolidaysStale::Apply, (from, until), zone);
    let hour = |time: Timestamp| time.duration_since(from).as_hours();
    periods.into_iter().map(|(from, until)| (hour(from), hour(until))).collect()
}

/// PBS-P-03: prime time is Monday to Friday, and not on holidays: 2026-01-01 is a Thursday.
#[test]
fn prime_time_is_on_working_days() {
    let zone = zurich();
    let week = hours(&config(9 * 3600, 17 * 3600), &zone);
    assert_eq!(week, [(0, 9), (17, 33), (41, 57), (65, 105), (113, 168)]);
    let nights = hours(&config(22 * 3600, 6 * 3600), &zone);
    assert_eq!(nights, [(6, 22), (30, 46), (54, 70), (72, 96), (102, 118), (120, 168)]);
    assert_eq!(hours(&config(0, 24 * 3600), &zone), [(72, 96), (120, 168)]);
    assert_eq!(hours(&config(0, 0), &zone), [(0, 168)]);
    let never = PresetConfig { enforce_prime_time: Enforced::Never, ..config(0, 24 * 3600) };
    assert_eq!(hours(&never, &zone), [(0, 168)]);
    let later = Enforced::From(date(2025, 12, 30).at(12, 0, 0, 0));
    let later = PresetConfig { enforce_prime_time: later, ..config(0, 24 * 3600) };
    assert_eq!(hours(&later, &zone), [(0, 36), (72, 96), (120, 168)]);
}

proptest! {
    /// PBS-P-03: a moment is prime exactly if the hours of its local day say so, also where clocks change.
    #[test]
    fn periods_agree_with_the_clock(start in 0u64..=24, end in 0u64..=24, day in 0i64..400, minute in 0i64..1440) {
        let (zone, config) = (zurich(), config(start * 3600, end * 3600));
        let from = at("2026-01-02T00:00:00", &zone);
        let until = Timestamp::from_second(from.as_second() + 400 * 86_400).expect("a time");
        let periods = non_prime_periods(&config, &new_year(), HolidaysStale::Apply, (from, until), &zone);
        prop_assert!(periods.iter().all(|(from, until)| from < until));
        prop_assert!(periods.windows(2).all(|two| two[0].1 < two[1].0), "they neither overlap nor touch");
        let time = Timestamp::from_second(from.as_second() + day * 86_400 + minute * 60).expect("a time");
        prop_assume!(time < until);
        let local = zone.to_datetime(time);
        let hour = u64::try_from(local.hour()).expect("an hour");
        let in_hours = if start < end { start <= hour && hour < end } else { start != end && (hour < end || start <= hour) };
        let is_day = local.weekday().to_monday_zero_offset() < 5 && local.date().day_of_year() != 1;
        // An hour that is skipped or doubled belongs to either side.
        prop_assume!(![date(2026, 3, 29), date(2026, 10, 25)].contains(&local.date()));
        let is_prime = !periods.iter().any(|(from, until)| *from <= time && time < *until);
        prop_assert_eq!(is_prime, in_hours && is_day, "{} {}", local, time);
    }

    /// PBS-P-09: it does not matter how often usage decays within a day.
    #[test]
    fn usage_decays_once_a_day(usage in 0u64..1_000_000, steps in prop::collection::vec(1i64..200_000, 0..20)) {
        let start = Timestamp::from_second(1_000_000).expect("a time");
        let factor = Decimal::parse("0.75").expect("a number");
        let (mut left, mut last, mut now) = (usage, start, start);
        for step in steps {
            now = Timestamp::from_second(now.as_second() + step).expect("a time");
            let (days, decayed) = past_usage::days_since(last, now);
            (left, last) = (past_usage::decayed(left, factor, days), decayed);
        }
        let (days, decayed) = past_usage::days_since(start, now);
        prop_assert_eq!((left, last), (past_usage::decayed(usage, factor, days), decayed));
    }

    /// PBS-P-14: whatever a program prints, it is read or refused.
    #[test]
    fn any_answer_is_read_or_refused(text in "[ -~\n]{0,200}") {
        let _ = outages::read(&text);
    }
}

/// PBS-P-14: lines of outages, and a text that goes on in indented lines.
#[test]
fn outages_have_a_host_and_two_times() {
    let text = "# planned\nOrigin1.site.org 03/10/2026 13:00-14:30 03/11/2026 new disks\n  and more\n\
                origin1 04/01/2026 00:00-24:00 04/01/2026\ncluster 03/10/2026 8:00-9:00 03/10/2026 power\n";
    let outages = outages::read(text).expect("no mistakes");
    let at = |month, day, hour, minute| date(2026, month, day).at(hour, minute, 0, 0);
    assert_eq!(outages["origin1"].periods, [(at(3, 10, 13, 0), at(3, 11, 14, 30)), (at(4, 1, 0, 0), at(4, 2, 0, 0))]);
    assert_eq!(outages["cluster"].periods, [(at(3, 10, 8, 0), at(3, 10, 9, 0))]);
    for (text, expected) in [
        ("h soon", "outages:1: expected HOST MM/DD/YYYY HH:MM-HH:MM MM/DD/YYYY and a text (token 'soon')"),
        ("h 03/10/2026 13:00 03/10/2026 x", "outages:1: expected HH:MM-HH:MM (token '13:00')"),
        ("h 02/30/2026 13:00-14:00 03/10/2026 x", "outages:1: there is no such date (token '02/30/2026')"),
        ("h 03/10/2026 13:00-12:00 03/10/2026 x", "outages:1: expected an end after the begin (token '12:00')"),
    ] {
        let errors = outages::read(text).expect_err("a mistake");
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    }
}

/// PBS-P-09: the factor of a day.
#[test]
fn usage_is_multiplied_once_a_day() {
    let factor = |text| Decimal::parse(text).expect("a number");
    let left = |usage, text, days| past_usage::decayed(usage, factor(text), days);
    assert_eq!(
        [left(100, "0.75", 0), left(100, "0.75", 1), left(100, "0.75", 2), left(1, "0.75", 1)],
        [100, 75, 56, 0]
    );
    assert_eq!([left(100, "1", i64::MAX), left(100, "0", 1), left(u64::MAX, "0.95", i64::MAX)], [100, 0, 0]);
    assert_eq!(left(100, "0.75", -5), 100);
}
