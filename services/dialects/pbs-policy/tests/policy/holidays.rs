//! Prime time and holidays.

use crate::support::{HOLIDAYS, at, checked, errors_in, policy, shown, warnings_in, zurich};
use jiff::{SignedDuration, Timestamp, civil, tz::TimeZone};
use muster_pbs_policy::{holidays::Holidays, mode::Mode, sched_config::HolidaysStale};
use proptest::prelude::*;

const FILE: &str = "holidays";

fn holidays(text: &str) -> Holidays {
    policy(&[(FILE, text)]).holidays
}

fn mode(holidays: &Holidays, local: &str) -> Mode {
    holidays.mode(at(local, &zurich()), &zurich(), HolidaysStale::Apply)
}

/// W5: PBS-T-01, PBS-T-02, PBS-T-03, PBS-T-04.
#[test]
fn the_sample_has_prime_time_and_holidays() {
    let sample = holidays(HOLIDAYS);
    assert_eq!(warnings_in(FILE, HOLIDAYS), Vec::<String>::new());
    for time in ["1998-03-10T04:00:00", "1998-03-10T11:29:59", "1998-05-27T10:00:00", "1998-07-06T10:00:00"] {
        assert_eq!(mode(&sample, time), Mode::Prime, "{time}");
    }
    for time in [
        "1998-03-10T03:59:59",
        "1998-03-10T11:30:00",
        "1998-03-14T10:00:00",
        "1998-03-15T10:00:00",
        "1998-05-26T10:00:00",
        "1998-11-27T10:00:00",
        "1998-12-25T10:00:00",
        "1998-12-25T00:00:00",
    ] {
        assert_eq!(mode(&sample, time), Mode::NonPrime, "{time}");
    }
}

/// W5: PBS-T-05.
#[test]
fn a_file_of_another_year_can_be_applied_or_ignored() {
    let sample = holidays(HOLIDAYS);
    let mode = |local: &str, stale| sample.mode(at(local, &zurich()), &zurich(), stale);
    for stale in [HolidaysStale::Apply, HolidaysStale::Ignore] {
        assert_eq!(mode("2026-11-20T10:00:00", stale), Mode::Prime);
        assert_eq!(mode("2026-11-20T12:00:00", stale), Mode::NonPrime);
        assert_eq!(mode("1998-11-27T10:00:00", stale), Mode::NonPrime);
    }
    assert_eq!(mode("2026-11-27T10:00:00", HolidaysStale::Apply), Mode::NonPrime);
    assert_eq!(mode("2026-11-27T10:00:00", HolidaysStale::Ignore), Mode::Prime);
    let (friday, saturday) = (civil::date(2026, 11, 20), civil::date(2026, 11, 21));
    let warning = Some("holidays: the file is for 1998, and it is 2026".to_owned());
    assert_eq!(sample.stale_warning(friday, None), warning);
    assert_eq!(sample.stale_warning(friday, Some(friday)), None);
    assert_eq!(sample.stale_warning(saturday, Some(friday)), warning);
    assert_eq!(sample.stale_warning(civil::date(1998, 1, 1), None), None);
    assert_eq!(Holidays::default().stale_warning(friday, None), None);
}

/// W5: PBS-T-02, prime time over midnight.
#[test]
fn prime_time_can_run_over_midnight() {
    let night = holidays("YEAR 1998\nweekday 2200 0600\n");
    for (time, expected) in [
        ("1998-03-10T21:59:00", Mode::NonPrime),
        ("1998-03-10T22:00:00", Mode::Prime),
        ("1998-03-11T05:59:00", Mode::Prime),
        ("1998-03-11T06:00:00", Mode::NonPrime),
    ] {
        assert_eq!(mode(&night, time), expected, "{time}");
    }
}

/// PBS-T-02, PBS-T-03: every pair of words.
#[test]
fn all_and_none_decide_before_times() {
    for (times, expected) in [
        ("all all", Mode::Prime),
        ("all none", Mode::Prime),
        ("all 0800", Mode::Prime),
        ("0800 all", Mode::NonPrime),
        ("none all", Mode::NonPrime),
        ("none 0800", Mode::NonPrime),
        ("none none", Mode::Prime),
        ("0800 none", Mode::Prime),
        ("0800 0800", Mode::NonPrime),
        ("ALL None", Mode::Prime),
    ] {
        let holidays = holidays(&format!("YEAR 1998\nweekday {times}\n"));
        for time in ["1998-03-10T00:00:00", "1998-03-10T08:00:00", "1998-03-10T23:59:00"] {
            assert_eq!(mode(&holidays, time), expected, "{times} at {time}");
        }
    }
    for word in ["all", "none"] {
        assert_eq!(
            warnings_in(FILE, &format!("YEAR 1998\nweekday {word} {word}\n")),
            [format!("holidays:2: both times are {word}: it is prime all day (token 'weekday')")]
        );
    }
}

/// PBS-T-01: days of the week win over `weekday`, wherever they stand.
#[test]
fn days_win_over_weekday() {
    let week = holidays("YEAR 1998\nfriday none all\nweekday 0800 1700\nmonday all none\n");
    assert_eq!(mode(&week, "1998-03-13T10:00:00"), Mode::NonPrime);
    assert_eq!(mode(&week, "1998-03-09T22:00:00"), Mode::Prime);
    assert_eq!(mode(&week, "1998-03-10T22:00:00"), Mode::NonPrime);
    // A day without a row is prime.
    assert_eq!(mode(&week, "1998-03-14T22:00:00"), Mode::Prime);
}

/// PBS-T-01: old forms of the file.
#[test]
fn old_forms_are_read() {
    let old = holidays("HOLIDAYFILE_VERSION1\n* comment\n# comment\nyear 1998\n1998 0400 1530\nSATURDAY none all\n");
    assert_eq!(mode(&old, "1998-03-10T15:29:00"), Mode::Prime);
    assert_eq!(mode(&old, "1998-03-10T15:30:00"), Mode::NonPrime);
    assert_eq!(mode(&old, "1998-03-14T10:00:00"), Mode::NonPrime);
}

/// PBS-T-01: without a file, or without YEAR, it is prime at all times.
#[test]
fn without_a_year_it_is_always_prime() {
    let none = checked(&[("sched_config", "")]);
    assert_eq!(shown(&none.warnings), ["holidays: no such file: it is prime at all times"]);
    let without = "weekday 0400 1130\n146 May 26 Memorial Day\n";
    assert_eq!(
        warnings_in(FILE, without),
        ["holidays:1: is not there: it is prime at all times, and there are no holidays (token 'YEAR')"]
    );
    for holidays in [none.policy.expect("no errors").holidays, holidays(without)] {
        assert_eq!(mode(&holidays, "1998-05-26T22:00:00"), Mode::Prime);
        assert_eq!(holidays.next_change(at("1998-05-01T00:00:00", &zurich()), &zurich(), HolidaysStale::Apply), None);
    }
}

/// PBS-T-04: the number of the day decides.
#[test]
fn a_date_of_another_day_is_warned_of() {
    assert_eq!(
        warnings_in(FILE, "49 Feb 17 President's Day\nYEAR 1998\n360 Dec 25 Christmas\n366 Feb 30 Eve\n"),
        [
            "holidays:1: the number counts: it is Feb 18, but 'Feb 17' is day 48 (token '49')",
            "holidays:3: the number counts: it is Dec 26, but 'Dec 25' is day 359 (token '360')",
            "holidays:4: the number counts: it is no day of 1998, but 'Feb 30' is no day of 1998 (token '366')",
        ]
    );
    assert_eq!(warnings_in(FILE, "YEAR 2024\n366 December 31 Eve\n60 Feb 29 Leap day\n"), Vec::<String>::new());
    assert_eq!(warnings_in(FILE, "YEAR 1998\n100 Founder's Day\n100 4/10 Day\n"), Vec::<String>::new());
    assert_eq!(
        warnings_in(FILE, "YEAR 1998\n0 Jan 0 nothing\n"),
        ["holidays:2: there is no such day: the line has no effect (token '0')"]
    );
    assert_eq!(mode(&holidays("YEAR 1998\nweekday all none\n49 Feb 17 x\n"), "1998-02-18T10:00:00"), Mode::NonPrime);
}

/// PBS-T-04: the last day of a leap year.
#[test]
fn day_366_is_a_day_of_leap_years() {
    let eve = holidays("YEAR 2024\n366 Dec 31 Eve\n");
    assert_eq!(mode(&eve, "2024-12-31T12:00:00"), Mode::NonPrime);
    assert_eq!(mode(&eve, "2025-12-31T12:00:00"), Mode::Prime);
}

/// PBS-T-06.
#[test]
fn mistakes_are_errors_at_their_words() {
    let time = |mode: &str, word: &str| {
        format!("expected the time at which {mode} time starts: 0000 to 2359, all or none (token '{word}')")
    };
    let two_times = "expected two times behind the day: when prime and when non-prime time starts (token 'weekday')";
    let two_times = two_times.to_owned();
    for (text, expected) in [
        ("weekday 0400 2460", time("non-prime", "2460")),
        ("weekday 2400 0600", time("prime", "2400")),
        ("weekday 04:00 0600", time("prime", "04:00")),
        ("weekday 00400 0600", time("prime", "00400")),
        ("saturday never all", time("prime", "never")),
        ("weekday 0400", two_times.clone()),
        ("weekday", two_times),
        ("367 Jan 1 x", "expected a day from 1 to 366 (token '367')".to_owned()),
        ("12345 Jan 1 x", "expected a day from 1 to 366 (token '12345')".to_owned()),
        ("YEAR soon", "expected a year (token 'soon')".to_owned()),
        ("YEAR", "expected a year (token 'YEAR')".to_owned()),
        (
            "wekday 0400 0600",
            "expected YEAR, weekday, a day of the week, or a day from 1 to 366; is 'weekday' meant? (token 'wekday')"
                .to_owned(),
        ),
        ("1.5 Jan 1", "expected YEAR, weekday, a day of the week, or a day from 1 to 366 (token '1.5')".to_owned()),
    ] {
        assert_eq!(errors_in(FILE, &format!("* x\n{text}\n")), [format!("holidays:2: {expected}")], "{text}");
    }
}

/// PBS-F-01: a row that overrides another one is warned of.
#[test]
fn a_row_that_stands_twice_is_warned_of() {
    assert_eq!(
        warnings_in(FILE, "YEAR 1998\nYEAR 1999\nweekday all none\nweekday none all extra\n"),
        [
            "holidays:2: is set again: line 1 no longer counts (token 'YEAR')",
            "holidays:4: is set again: line 3 no longer counts (token 'weekday')",
            "holidays:4: is not read: nothing is expected here (token 'extra')",
        ]
    );
}

/// PBS-T-08: the next change of mode, over days, weekends and holidays.
#[test]
fn the_next_change_of_mode_is_known() {
    let sample = holidays(HOLIDAYS);
    for (now, change, new) in [
        ("1998-03-10T03:00:00", "1998-03-10T04:00:00", Mode::Prime),
        ("1998-03-10T04:00:00", "1998-03-10T11:30:00", Mode::NonPrime),
        ("1998-03-10T11:30:00", "1998-03-11T04:00:00", Mode::Prime),
        ("1998-03-13T12:00:00", "1998-03-16T04:00:00", Mode::Prime),
        ("1998-05-25T12:00:00", "1998-05-27T04:00:00", Mode::Prime),
    ] {
        let found = sample.next_change(at(now, &zurich()), &zurich(), HolidaysStale::Apply);
        assert_eq!(found, Some((at(change, &zurich()), new)), "{now}");
    }
    // With prime time around the clock only holidays change the mode.
    let always = holidays("YEAR 1998\nweekday all none\n359 Dec 25 Christmas Day\n");
    let next = |now: &str| always.next_change(at(now, &zurich()), &zurich(), HolidaysStale::Apply);
    assert_eq!(next("1998-01-01T12:00:00"), Some((at("1998-12-25T00:00:00", &zurich()), Mode::NonPrime)));
    assert_eq!(next("1998-12-25T12:00:00"), Some((at("1998-12-26T00:00:00", &zurich()), Mode::Prime)));
}

/// PBS-T-07: at two o'clock clocks are put forward on 2026-03-29 and, at three, back on 2026-10-25.
#[test]
fn clock_changes_skip_and_double_local_times() {
    let zone = zurich();
    let utc = |text: &str| text.parse::<Timestamp>().expect("a time");
    let skipped = holidays("YEAR 2026\nsunday 0230 1000\n");
    let mode = |holidays: &Holidays, time: &str| holidays.mode(utc(time), &zone, HolidaysStale::Apply);
    assert_eq!(mode(&skipped, "2026-03-29T00:59:59Z"), Mode::NonPrime);
    assert_eq!(mode(&skipped, "2026-03-29T01:00:00Z"), Mode::Prime);
    // The hour from two to three happens twice: at 00:00 and at 01:00 in UTC.
    let doubled = holidays("YEAR 2026\nsunday 0100 0230\n");
    assert_eq!(mode(&doubled, "2026-10-25T00:29:59Z"), Mode::Prime);
    assert_eq!(mode(&doubled, "2026-10-25T00:30:00Z"), Mode::NonPrime);
    assert_eq!(mode(&doubled, "2026-10-25T01:15:00Z"), Mode::NonPrime);
    assert_eq!(mode(&doubled, "2026-10-25T01:30:00Z"), Mode::NonPrime);
    let change = skipped.next_change(utc("2026-03-29T00:00:00Z"), &zone, HolidaysStale::Apply);
    assert_eq!(change, Some((utc("2026-03-29T01:00:00Z"), Mode::Prime)));
}

/// PBS-T-07, PBS-T-08: in St. John's, one minute after the midnight that ended 2010-11-06, clocks went back to 23:01.
#[test]
fn a_day_can_begin_twice() {
    let zone = TimeZone::get("America/St_Johns").expect("a zone");
    let weekend = holidays("YEAR 2010\nsaturday none all\nsunday all none\nweekday none all\n");
    let mut now: Timestamp = "2010-11-06T12:00:00Z".parse().expect("a time");
    for (expected, new) in [
        ("2010-11-07T02:30:00Z", Mode::Prime),
        ("2010-11-07T02:31:00Z", Mode::NonPrime),
        ("2010-11-07T03:30:00Z", Mode::Prime),
        ("2010-11-08T03:30:00Z", Mode::NonPrime),
    ] {
        let change = weekend.next_change(now, &zone, HolidaysStale::Apply);
        let expected = expected.parse().expect("a time");
        assert_eq!(change, Some((expected, new)));
        now = expected;
    }
}

/// PBS-T-07: the mode is that of the local time of the zone.
#[test]
fn the_zone_decides() {
    let sample = holidays(HOLIDAYS);
    let now = at("1998-03-10T11:00:00", &zurich());
    assert_eq!(sample.mode(now, &zurich(), HolidaysStale::Apply), Mode::Prime);
    assert_eq!(sample.mode(now, &TimeZone::get("Asia/Tokyo").expect("a zone"), HolidaysStale::Apply), Mode::NonPrime);
}

/// Nothing panics at the ends of the calendar.
#[test]
fn the_calendar_has_ends() {
    let sample = holidays(HOLIDAYS);
    let day = SignedDuration::from_hours(24);
    for zone in [zurich(), TimeZone::UTC, TimeZone::get("Pacific/Kiritimati").expect("a zone")] {
        for now in [Timestamp::MIN, Timestamp::MIN + day, Timestamp::MAX - day, Timestamp::MAX] {
            let _ = sample.mode(now, &zone, HolidaysStale::Apply);
            let _ = sample.next_change(now, &zone, HolidaysStale::Apply);
        }
    }
}

fn any_start() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("all".to_owned()),
        Just("none".to_owned()),
        (0..24u32, 0..60u32).prop_map(|(h, m)| format!("{h:02}{m:02}"))
    ]
}

proptest! {
    /// PBS-T-08: between now and the next change the mode is the same, and there it is the new one.
    #[test]
    fn the_mode_changes_at_the_next_change_and_not_before(
        rows in proptest::collection::vec((any_start(), any_start()), 8),
        days in proptest::collection::vec(1..367u32, 0..40),
        // A year of changed clocks in zones in which they change at midnight and just after it.
        minutes in 0..525_600i64,
        zone in proptest::sample::select(vec!["Europe/Zurich", "America/St_Johns", "America/Havana", "Africa/Cairo"]),
        stale: bool,
    ) {
        let names = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "weekday"];
        let mut text = "YEAR 2010\n".to_owned();
        rows.iter().zip(names).for_each(|((prime, other), name)| text += &format!("{name} {prime} {other}\n"));
        days.iter().for_each(|day| text += &format!("{day} holiday\n"));
        let holidays = holidays(&text);
        let zone = TimeZone::get(zone).expect("a zone");
        let stale = if stale { HolidaysStale::Ignore } else { HolidaysStale::Apply };
        let now = at("2010-01-01T00:00:00", &zone) + SignedDuration::from_mins(minutes);
        let mode = holidays.mode(now, &zone, stale);
        let change = holidays.next_change(now, &zone, stale);
        let end = change.map_or(now + SignedDuration::from_hours(24 * 30), |(time, _)| time);
        let mut time = now;
        while time < end {
            prop_assert_eq!(holidays.mode(time, &zone, stale), mode, "{} {}", now, time);
            time += SignedDuration::from_mins(7);
        }
        if let Some((time, new)) = change {
            prop_assert!(time > now && new != mode);
            prop_assert_eq!(holidays.mode(time, &zone, stale), new);
            prop_assert_eq!(holidays.mode(time - SignedDuration::from_secs(1), &zone, stale), mode);
        }
    }
}
